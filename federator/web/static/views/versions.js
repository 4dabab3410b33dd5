// Versions, tags, branches and indices: read from the stored table through the Lance protocol when the tab is opened.
import {encode, query, send} from "../api.js";
import {make, name, splitId} from "../dom.js";
import {ago, count, words} from "../format.js";
import {button, empty, more, panel, table, tableRow} from "../parts.js";

const PAGE = 50;
const DELIMITERS = ["$", "|", "::", "\u001f"];

function address(id, operation, values) {
  const names = splitId(id), delimiter = DELIMITERS.find(each => !names.some(part => part.includes(each))) ?? "\u001e";
  return query(`/v1/table/${encode(names.join(delimiter))}/${operation}`, {delimiter: delimiter === "$" ? null : delimiter, ...values});
}

const read = (id, operation, values, signal) => send("POST", address(id, operation, values), {}, undefined, signal);

/* A list that is read in pages. `columns` as for a table; `entriesOf` and `cells` take a response and one of its entries. */
async function listed(title, columns, {page, entriesOf, cells, none}) {
  const first = await page(null), entries = entriesOf(first);
  if (!entries.length) return panel(title, {}, empty(none, null, {state: "skipped"}));
  const shown = table(columns, entries.map(cells), title), body = shown.querySelector("tbody");
  return panel(title, {note: first.page_token ? null : count(entries.length)}, shown, more(first.page_token, async token => {
    const next = await page(token);
    body?.append(...entriesOf(next).map(entry => tableRow(columns, cells(entry))));
    return next.page_token;
  }));
}

const PARTS = [
  {title: "Versions", load: (id, signal) => listed("Versions", [["Version"], ["Rows", "n"], ["Tags"], ["Written", "n nw"]], {
    page: async token => {
      const [versions, tags] = await Promise.all([read(id, "version/list", {descending: true, limit: PAGE, page_token: token}, signal), read(id, "tags/list", {limit: 1000}, signal)]);
      return {...versions, tags: Object.entries(tags.tags)};
    },
    entriesOf: response => response.versions.map(version => ({...version, tags: response.tags.filter(([, tag]) => tag.version === version.version && !tag.branch).map(([tag]) => tag)})),
    cells: version => [count(version.version), version.metadata?.total_rows ? count(Number(version.metadata.total_rows)) : "",
      version.tags.length ? make("span", {}, version.tags.map(tag => make("span", {class: "tag info"}, name(tag)))) : null, ago(new Date(version.timestamp_millis).toISOString())],
    none: "No version was written yet"})},
  {title: "Tags", load: (id, signal) => listed("Tags", [["Tag", "name"], ["Version", "n"], ["Branch"]], {
    page: token => read(id, "tags/list", {limit: PAGE, page_token: token}, signal), entriesOf: response => Object.entries(response.tags),
    cells: ([tag, at]) => [name(tag), count(at.version), at.branch ? name(at.branch) : "main"], none: "No tags"})},
  {title: "Branches", load: (id, signal) => listed("Branches", [["Branch", "name"], ["From"], ["Made", "n nw"]], {
    page: token => read(id, "branches/list", {limit: PAGE, page_token: token}, signal), entriesOf: response => Object.entries(response.branches),
    cells: ([branch, from]) => [name(branch), make("span", {}, name(from.parentBranch ?? "main"), ` at version ${count(from.parentVersion)}`), ago(new Date(from.createAt * 1000).toISOString())],
    none: "No branches but main"})},
  {title: "Indices", load: (id, signal) => listed("Indices", [["Index", "name"], ["Type"], ["Columns"], ["Rows indexed", "n"], ["Not indexed", "n"]], {
    page: token => send("POST", address(id, "index/list", {}), {limit: PAGE, ...(token ? {page_token: token} : {})}, undefined, signal), entriesOf: response => response.indexes,
    cells: index => [name(index.index_name), words(index.index_type), make("span", {}, index.columns.map((column, at) => [at ? ", " : "", name(column)])), count(index.num_indexed_rows), count(index.num_unindexed_rows)],
    none: "No indices"})},
];

/* The four lists, each with its own error. Reading ends with the view, or by the button. */
export function versionsPanels(id, signal) {
  const running = new Set(), cancel = button("Stop reading", () => running.forEach(stop => stop.abort()));
  const load = part => {
    const stop = new AbortController(), place = panel(part.title, {}, make("p", {class: "pad q", role: "status", text: "The table is being opened …"}));
    const settle = result => {
      running.delete(stop);
      cancel.hidden = !running.size;
      if (!signal.aborted) place.replaceWith(result);
    };
    running.add(stop);
    cancel.hidden = false;
    part.load(id, AbortSignal.any([signal, stop.signal])).then(settle, error => {
      const again = button("Read again", () => { failed.replaceWith(load(part)); });
      const failed = panel(part.title, {}, error.name === "AbortError" ? empty("Reading was stopped", null, {action: again})
        : empty(make("span", {role: "alert", text: error.message}), error.hint, {state: "unreachable", action: again}));
      settle(failed);
    });
    return place;
  };
  const columns = [["Versions", "Indices"], ["Tags", "Branches"]].map(side => make("div", {class: "stack"}, PARTS.filter(part => side.includes(part.title)).map(load)));
  return [make("div", {class: "stack"}, make("p", {class: "q reading"}, "Read from the stored table itself. ", cancel), make("div", {class: "cols"}, columns))];
}
