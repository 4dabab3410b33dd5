// lancedb for Node, over a namespace of the REST protocol and by its remote client. Steps and outcomes are those of runner.py.
"use strict";

const assert = require("node:assert");
const { randomBytes } = require("node:crypto");
const { readFileSync, writeFileSync, appendFileSync } = require("node:fs");

const arrow = require("apache-arrow");
const lancedb = require("@lancedb/lancedb");

const ROWS = [1, 2, 3].map((id) => ({ id, vector: [id, 0], note: `note ${id}` }));
const SPACED = "two words";

async function* steps(server, remote) {
  const database = remote
    ? await lancedb.connect("db://interop", { apiKey: server.api_key, hostOverride: server.uri })
    : await lancedb.connectNamespace("rest", { uri: server.uri, headers: { "x-api-key": server.api_key } });
  const above = [...server.parent, `ns_${randomBytes(4).toString("hex")}`];
  const open = (name) => database.openTable(name, above);
  const create = (name) => database.createTable(name, ROWS, above);
  const names = async () => (await database.listTables(above)).tables.sort();
  const ids = async (query) => (await query.toArray()).map((row) => Number(row.id)).sort();

  yield ["create a namespace", () => database.createNamespace(above)];
  yield ["list namespaces", async () => {
    const listed = (await database.listNamespaces(server.parent)).namespaces;
    assert(listed.includes(above.at(-1)), `${listed}`);
  }];
  yield ["create, describe and drop a namespace by modes", async () => {
    const other = [...server.parent, `ns_${randomBytes(4).toString("hex")}`];
    await database.createNamespace(other, { mode: "create" });
    await database.createNamespace(other, { mode: "exist_ok" });
    await assert.rejects(database.createNamespace(other), /exists|409/i);
    await database.describeNamespace(other);
    await database.dropNamespace(other, { mode: "fail", behavior: "restrict" });
    await database.dropNamespace(other, { mode: "skip" });
  }];
  yield ["create a table", () => create("orders")];
  yield ["add rows and count", async () => {
    await (await open("orders")).add(ROWS);
    assert.strictEqual(await (await open("orders")).countRows(), 6);
    assert.strictEqual(await (await open("orders")).countRows("id > 1"), 4);
  }];
  yield ["filter and project", async () => {
    const found = await (await open("orders")).query().where("id = 2").select(["note"]).toArray();
    assert.deepStrictEqual(found.map((row) => row.note), ["note 2", "note 2"]);
  }];
  yield ["search a vector", async () => assert.deepStrictEqual(await ids((await open("orders")).vectorSearch([3, 0]).limit(1)), [3])];
  yield ["update, delete, merge", async () => {
    const table = await open("orders");
    await table.update({ where: "id = 1", values: { note: "changed" } });
    assert.strictEqual(await table.countRows("note = 'changed'"), 2);
    await table.delete("id = 2");
    assert.strictEqual(await table.countRows(), 4);
    await table.mergeInsert("id").whenNotMatchedInsertAll().execute([{ id: 9, vector: [9, 0], note: "new" }]);
    assert.strictEqual(await table.countRows(), 5);
  }];
  yield ["versions and tags", async () => {
    const table = await open("orders");
    const versions = await table.listVersions();
    assert(versions.length > 1, `${versions.length} versions`);
    await (await table.tags()).create("first", 1);
    assert.strictEqual(await (await table.tags()).getVersion("first"), 1);
    await table.checkout(1);
    assert.strictEqual(await table.countRows(), 3);
  }];
  yield ["restore a version", async () => {
    const table = await open("orders");
    await table.checkout(1);
    await table.restore();
    assert.strictEqual(await (await open("orders")).countRows(), 3);
  }];
  yield ["index a column, list indices", async () => {
    const table = await open("orders");
    await table.createIndex("id", { config: lancedb.Index.btree() });
    assert.deepStrictEqual((await table.listIndices()).map((index) => index.columns), [["id"]]);
  }];
  yield ["full text search", async () => {
    const table = await open("orders");
    await table.createIndex("note", { config: lancedb.Index.fts() });
    assert.deepStrictEqual(await ids(table.search("2", "fts", "note").limit(3)), [2]);
  }];
  yield ["add, alter and drop columns", async () => {
    const table = await open("orders");
    await table.addColumns([{ name: "twice", valueSql: "id * 2" }]);
    await table.alterColumns([{ path: "twice", rename: "double" }]);
    assert.deepStrictEqual((await (await open("orders")).schema()).fields.map((field) => field.name), ["id", "vector", "note", "double"]);
    await table.dropColumns(["double"]);
    assert.strictEqual((await (await open("orders")).schema()).fields.length, 3);
  }];
  yield ["create an empty table", async () => {
    const schema = new arrow.Schema([new arrow.Field("id", new arrow.Int64(), true)]);
    await database.createEmptyTable("empty", schema, above);
    assert.strictEqual(await (await open("empty")).countRows(), 0);
  }];
  yield ["list tables by pages", async () => {
    assert.deepStrictEqual(await names(), ["empty", "orders"]);
    const first = await database.listTables(above, { limit: 1 });
    const second = await database.listTables(above, { limit: 1, pageToken: first.pageToken });
    assert.deepStrictEqual([...first.tables, ...second.tables], ["empty", "orders"]);
  }];
  yield ["list tables after a name", async () =>
    assert.deepStrictEqual(await database.tableNames(above, { startAfter: "empty" }), ["orders"])];
  yield ["open or create", async () => {
    const table = await database.createTable("orders", ROWS, above, { existOk: true });
    assert.strictEqual(await table.countRows(), 3);
  }];
  yield ["statistics of a table and an index", async () => {
    const table = await open("orders");
    const [index] = await table.listIndices();
    assert.strictEqual((await table.indexStats(index.name)).numIndexedRows, 3);
    assert.strictEqual((await table.stats()).numRows, 3);
  }];
  yield ["explain and analyze a query", async () => {
    const query = (await open("orders")).query().where("id = 1");
    assert.match(await query.explainPlan(true), /id/);
    assert.match(await query.analyzePlan(), /id/);
  }];
  yield ["refuse an existing name", () => assert.rejects(create("orders"), /already exists|409/)];
  yield ["refuse a missing table", () => assert.rejects(open("none"), /not found|not exist/i)];
  yield ["refuse to drop a missing table", () => assert.rejects(database.dropTable("none", above), /not found|not exist/i)];
  yield ["refuse a filter of an unknown column", async () =>
    assert.rejects(async () => (await open("orders")).query().where("nothing = 1").toArray(), /nothing/)];
  yield ["refuse to drop a namespace with tables", () => assert.rejects(database.dropNamespace(above), /not empty|NamespaceNotEmpty|409/i)];
  yield ["overwrite a table", async () => {
    await database.createTable("orders", ROWS.slice(1), above, { mode: "overwrite" });
    assert.strictEqual(await (await open("orders")).countRows(), 2);
  }];
  yield ["refuse a wrong key", async () => {
    const other = await lancedb.connect("db://interop", { apiKey: "wrong", hostOverride: server.uri });
    await assert.rejects(other.listTables(above), /401/);
  }];
  yield ["read and drop a name with a space", async () => {
    const path = [...server.parent, `ns_${randomBytes(4).toString("hex")}`];
    await database.createNamespace(path);
    const id = encodeURIComponent([...path, SPACED].join("$"));
    const body = arrow.tableToIPC(lancedb.makeArrowTable(ROWS), "stream");
    const headers = { "content-type": "application/vnd.apache.arrow.stream", "x-api-key": server.api_key };
    const response = await fetch(`${server.uri}/v1/table/${id}/create`, { method: "POST", body, headers });
    assert(response.ok, await response.text());
    assert.strictEqual(await (await database.openTable(SPACED, path)).countRows(), 3);
    assert((await database.listTables(path)).tables.includes(SPACED));
    await database.dropTable(SPACED, path);
    await database.dropNamespace(path);
  }];
  yield ["drop tables", async () => {
    for (const name of await names()) await database.dropTable(name, above);
    assert.deepStrictEqual(await names(), []);
  }];
  yield ["drop the namespace", () => database.dropNamespace(above)];
}

async function main() {
  const config = JSON.parse(readFileSync(process.argv[2], "utf8"));
  writeFileSync(config.outcomes, "");
  for (const server of config.servers) {
    for await (const [operation, step] of steps(server, config.client.endsWith("remote"))) {
      let outcome = "passed";
      try {
        await step();
      } catch (error) {
        outcome = `${error.name}: ${error.message}`;
        console.error(operation, error);
      }
      appendFileSync(config.outcomes, `${JSON.stringify([server.name, operation, outcome])}\n`);
    }
  }
}

main();
