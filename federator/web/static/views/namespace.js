// The children of a namespace.
import {get, query} from "../api.js";
import {getElement, icon, make, name} from "../dom.js";
import {state, words} from "../format.js";
import {copyButton, empty, freshness, more, panel, path, staleNote, table, tableRow} from "../parts.js";
import {heading} from "./object.js";

const COLUMNS = [["Name", "name"], ["Kind"], ["State"], ["Location", "name"], ["Note", "long"]];
const SHAPES = {namespace: "namespace", source: "source"};

function cellsOf(node) {
  const holds = node.kind === "namespace", address = path("t", node.id) + (holds ? "?kind=namespace" : "");
  return [make("span", {}, icon(SHAPES[node.kind] ?? "table"), make("a", {href: address}, name(node.name))), words(node.kind),
    holds ? (node.coverage ? state(node.coverage) : null) : state(node.verified ?? "unverified"), node.location ? name(node.location, {mono: true}) : null, node.message];
}

/* The children of a path as a table that loads further pages. */
export async function childrenPanel(id, signal) {
  const address = cursor => query("/api/v1/tree", {path: id, limit: 80, cursor}), page = await get(address(), signal);
  const list = table(COLUMNS, page.nodes.map(cellsOf), "Contents"), body = getElement(list, "tbody");
  const following = more(page.next, async cursor => {
    const next = await get(address(cursor), signal);
    body.append(...next.nodes.map(node => tableRow(COLUMNS, cellsOf(node))));
    return next.next;
  });
  return {page, element: panel("Contents", {}, page.nodes.length ? list : empty("Empty", "The last crawl listed nothing here."), following)};
}

export async function showNamespace(id, signal) {
  const {page, element} = await childrenPanel(id, signal);
  return {nodes: [heading("namespace", id), make("div", {class: "sub"}, make("span", {}, name(id, {mono: true}), copyButton(id, "id"))),
    staleNote([page.freshness]), element, freshness([page.freshness])]};
}
