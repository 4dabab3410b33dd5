// The children of a source or a namespace, with what is stored at the tables' locations.
import {asOf, find, get, query} from "../api.js";
import {getElement, icon, make, name} from "../dom.js";
import {ago, count, size, state, upTo, words} from "../format.js";
import {copyButton, empty, freshness, more, note, panel, path, staleNote, table, tableRow} from "../parts.js";
import {setQuery} from "../router.js";
import {driftRows} from "./drift.js";
import {heading} from "./heading.js";
import {crawlButton} from "./sources.js";

/* Each column with its class and its order in the API. @type {[string, string, string?][]} */
const COLUMNS = [["Name", "name"], ["State", "", "state"], ["Tables", "n"], ["Rows", "n", "rows"], ["Size", "n", "size"], ["Declarations", "n"], ["Last write", "nw", "written"], ["Location", "name wide"]];
const SHAPES = {namespace: "namespace", source: "source"};
const AT_ONCE = 50;

/**
 * @param {any} node
 * @param {Set<string>} clashes ids of objects whose names are too alike
 */
function cellsOf(node, clashes) {
  const holds = node.kind === "namespace", address = path("t", node.id) + (holds ? "?kind=namespace" : ""), {stored} = node;
  const odd = [["namespace", "table"].includes(node.kind) ? null : make("span", {class: "tag warn", text: words(node.kind)}),
    clashes.has(node.id) ? make("span", {class: "tag warn", title: "Another name here differs only in case", text: "name clash"}) : null];
  return [make("span", {}, icon(SHAPES[node.kind] ?? "table"), make("a", {href: address}, name(node.name)), odd),
    holds ? (node.coverage ? state(node.coverage, {text: node.coverage === "complete" ? "listed" : undefined}) : state("never", {text: "not known"})) : state(node.verified ?? "unverified"),
    node.tables === null ? null : upTo(node.tables), stored && stored.rows !== null ? count(stored.rows) : null, size(stored?.size), node.declarations === null ? null : count(node.declarations), stored?.written_at ? ago(stored.written_at) : null,
    node.location || node.message ? make("div", {}, node.location ? name(node.location, {mono: true}) : null, node.message ? make("small", {class: "lacking", text: node.message}) : null) : null];
}

/* The heads that sort: numbers and times from the largest, states from A to Z; the second time the other way, then by name. */
function sortable(list, columns, sort) {
  for (const [at, head] of list.querySelectorAll("th").entries()) {
    const [title, , field] = columns[at];
    if (!field) continue;
    const [first, second] = field === "state" ? [field, `-${field}`] : [`-${field}`, field];
    if (sort === first || sort === second) head.setAttribute("aria-sort", sort.startsWith("-") ? "descending" : "ascending");
    head.replaceChildren(make("button", {type: "button", "data-keep-focus": true, "data-sort": field, onclick: async () => {
      await setQuery({sort: sort === first ? second : sort === second ? "" : first}, {replace: true});
      /** @type {HTMLElement | null} */ (document.querySelector(`[data-sort=${field}]`))?.focus();
    }, text: title}));
  }
}

/**
 * The children of a path as a table that loads further pages.
 * @param {string} id
 * @param {AbortSignal} signal
 * @param {string} [sort] an order of the API
 */
export async function childrenPanel(id, signal, sort = "") {
  const facts = asOf() ? {} : {with: "verified", counts: true, sort};
  const address = cursor => query("/api/v1/tree", {path: id, limit: AT_ONCE, ...facts, cursor}), [page, alike] = await Promise.all([get(address(), signal), asOf() ? null : find(query("/api/v1/drift", {below: id, kind: "name_clash", limit: 1000}), signal)]);
  const clashes = new Set((alike?.drift ?? []).flatMap(item => [item.subject, item.other]));
  // Namespaces have a name, a state and a number of tables only; tables have no such number.
  const namespaces = page.nodes.filter(node => node.kind === "namespace").length, shown = cells => cells.filter((_, at) => (at > 2 ? page.next || namespaces < page.nodes.length : at < 2 || (namespaces && !asOf())));
  const columns = shown(COLUMNS), list = table(columns, page.nodes.map(node => shown(cellsOf(node, clashes))), "Contents"), body = getElement(list, "tbody");
  if (!asOf()) sortable(list, columns, sort);
  const following = more(page.next, async cursor => {
    const next = await get(address(cursor), signal);
    body.append(...next.nodes.map(node => tableRow(columns, shown(cellsOf(node, clashes)))));
    return next.next;
  });
  return {page, element: panel("Contents", {}, page.nodes.length ? list : empty("Empty", "The last crawl listed nothing here."), following)};
}

/* Whether the namespace was read completely, if that is not so. */
const incomplete = entry => (entry && [entry.presence, entry.detail].some(each => ["failed", "skipped"].includes(each))
  ? note("warn", make("strong", {text: "Not read completely: "}), entry.presence_reason || entry.detail_reason || "the last crawl gave no reason", ". Nothing in it is treated as absent because of that.") : null);

/* Open drift at or below an object; null if there is none, or it is not known. */
export const driftBelow = async (id, signal) => {
  const page = await find(query("/api/v1/drift", {below: id, limit: 20}), signal);
  return page?.drift.length ? panel("Drift below", {note: page.next ? "the first 20" : count(page.drift.length)}, driftRows(page.drift)) : null;
};

export async function showNamespace(id, given, signal) {
  const source = id.split("$")[0], isPast = asOf() !== null;
  const [{page, element}, drift, coverage] = await Promise.all([childrenPanel(id, signal, given.get("sort") ?? ""), isPast ? null : driftBelow(id, signal),
    isPast ? null : find(query(`/api/v1/sources/${encodeURIComponent(source)}/coverage`, {short: true, limit: 1000}), signal)]);
  const entry = coverage?.namespaces.find(each => each.namespace === id);
  return {nodes: [heading("namespace", id, isPast ? null : make("div", {class: "acts"}, crawlButton(`Crawl ${source}`, {sources: [source]}))), make("div", {class: "sub"}, make("span", {}, name(id, {mono: true}), copyButton(id, "id"))),
    page.freshness ? staleNote([page.freshness]) : null, incomplete(entry), element, drift, page.freshness ? freshness([page.freshness]) : null]};
}
