// The tree of all sources: only the rows in sight are in the document, children are loaded in pages while one scrolls.
import {ApiError, asOf, encode, find, get, query} from "./api.js";
import {onOverview} from "./attention.js";
import {afterPress, around, byId, icon, make, name, parentId} from "./dom.js";
import {shapeOf, tablesText, toneOf, upTo, words} from "./format.js";
import {path} from "./parts.js";
import {navigate, onRoute} from "./router.js";

// A row is 1.625 rem high: 26 pixels, more where the text is larger.
const ROW = 1.625 * parseFloat(getComputedStyle(document.documentElement).fontSize), AROUND = 20, PAGE = 1000, KEY = "federator-tree";
// A row has one line: a name with more characters than this is cut in its middle.
const ONE_LINE = 16;
const tree = byId("tree"), filter = /** @type {HTMLInputElement} */ (byId("filter")), mergedButton = byId("merged");
const spacer = make("div", {class: "spacer", role: "presentation"});
// Of each id that was opened: {nodes, next, loading}. The tree root has the id "".
let shownMoment = asOf();
let tables = new Map(), lists = new Map(), open = new Set(), loaded = [], rows = [], drawn = new Map(), active = null, chosen = "", merged = false, found = null;
const holds = node => node.kind === "source" || node.kind === "namespace" || (merged && node.homes?.length > 1);
// A namespace and a table may have one path, so a key has the kind, too.
const keyOf = node => `${holds(node) ? "+" : "-"}${node.id}`;

/* A page of children, with the number of tables in each namespace. */
const read = (id, cursor) => get(query("/api/v1/tree", {path: id, view: merged ? "merged" : "", limit: PAGE, cursor, counts: Boolean(id) && !merged && asOf() === null}));

async function load(id, cursor) {
  const list = lists.get(id) ?? {nodes: [], next: null, loading: false};
  if (list.loading) return list;
  list.loading = true;
  lists.set(id, list);
  try {
    const page = await read(id, cursor);
    list.nodes = [...(cursor ? list.nodes : []), ...page.nodes];
    list.next = page.next;
    list.error = null;
  } catch (error) {
    list.error = error.message;
  }
  finish(id, list);
  return list;
}

/* The end of a request for a list. What has changed meanwhile may not be in its response. */
function finish(id, list) {
  list.loading = false;
  draw();
  if (list.isOld) readAgain(id);
}

const childrenOf = node => (merged && node.homes?.length > 1 && node.kind === "table" ? node.homes.map(home => ({...home, name: home.id, kind: "declaration"})) : null);

function append(id, level) {
  const list = lists.get(id);
  if (!list) return;
  for (const [at, node] of list.nodes.entries()) {
    loaded.push({key: keyOf(node), node, level, at: at + 1, of: list.next ? -1 : list.nodes.length});
    if (!open.has(keyOf(node))) continue;
    const inner = childrenOf(node);
    if (inner) loaded.push(...inner.map((child, number) => ({key: `=${child.id}`, node: child, level: level + 1, at: number + 1, of: inner.length})));
    else append(node.id, level + 1);
  }
  if (list.error) loaded.push({key: `!${id}`, text: `could not be read: ${list.error}`, level, id});
  else if (list.next || list.loading) loaded.push({key: `…${id}`, text: "loading…", level, id, cursor: list.next});
  else if (!list.nodes.length) loaded.push({key: `∅${id}`, text: id ? "empty" : "no source", level, id});
}

function flatten() {
  loaded = [];
  append("", 1);
  narrow();
}

/* With a filter, leave the rows that match it. */
function narrow() {
  const text = filter.value.trim().toLowerCase();
  rows = text ? matching(text) : loaded;
  if (!rows.length && text) rows = [{key: "none", text: "no match", level: 1}];
  spacer.style.height = `${rows.length * ROW}px`;
}

/* The matches with everything above them: loaded rows in their order, and what the server suggests between them. */
function matching(text) {
  const kept = [];
  let above = 0;
  // From the end: a row of a lower level than the match below it is above that match.
  for (let at = loaded.length - 1; at >= 0; at -= 1) {
    const row = loaded[at], {node} = row;
    if (!node) continue;
    row.lower ??= node.kind === "declaration" ? "" : node.name.toLowerCase();
    if (row.level >= above && !row.lower.includes(text)) continue;
    kept.push(row);
    above = row.level;
  }
  kept.reverse();
  const others = suggested(kept);
  if (!others.length) return kept;
  const all = [];
  let next = 0;
  for (const row of kept) {
    while (next < others.length && others[next].node.id < row.node.id) all.push(others[next++]);
    all.push(row);
  }
  return [...all, ...others.slice(next)];
}

/* Rows of what the server suggests and of what is above it, by id, without those that are there. */
function suggested(kept) {
  const rest = new Map();
  for (const node of found ?? []) {
    rest.set(keyOf(node), {key: keyOf(node), node, level: node.id.split("$").length, at: 1, of: -1});
    for (let above = parentId(node.id); above && !rest.has(`+${above}`); above = parentId(above)) {
      rest.set(`+${above}`, {key: `+${above}`, node: {id: above, name: above.split("$").at(-1), kind: above.includes("$") ? "namespace" : "source"}, level: above.split("$").length, at: 1, of: -1});
    }
  }
  if (rest.size) for (const row of kept) rest.delete(row.key);
  return [...rest.values()].sort((a, b) => (a.node.id < b.node.id ? -1 : a.node.id > b.node.id ? 1 : a.key < b.key ? -1 : 1));
}

// What is shown beside a name: only what is not well.
function problemOf(node) {
  if (node.conflict) return ["warn", "warn", "conflict: different locations"];
  const value = node.kind === "source" ? node.freshness?.state ?? node.coverage : node.kind === "namespace" ? node.coverage : node.verified;
  if (node.kind === "managed_table" || node.kind === "undescribed") return ["warn", "warn", words(node.kind)];
  if (!value || ["ok", "valid", "complete", "carried", "unverified"].includes(value)) return null;
  return [shapeOf(value), toneOf(value), words(value)];
}

/* The number of tables of a source or a namespace. */
function amountOf(node) {
  const number = merged || asOf() ? null : node.kind === "source" ? tables.get(node.id) : node.tables;
  return number === null || number === undefined ? null : make("small", {class: "q", title: tablesText(number), text: upTo(number)});
}

function rowElement(row, at) {
  const {node} = row;
  if (!node) return make("div", {class: "row q", role: "presentation", "data-level": row.level}, make("span", {class: "i"}), row.text);
  const isOpen = open.has(row.key), problem = problemOf(node), expandable = holds(node);
  const shape = {source: "source", namespace: "namespace"}[node.kind] ?? "table";
  const detail = node.homes && node.homes.length > 1 ? `${node.homes.length} declarations` : node.homes?.length === 1 ? node.homes[0].source : null;
  return make("div", {role: "treeitem", id: `row-${at}`, class: "row", "aria-level": row.level, "aria-posinset": row.at, "aria-setsize": row.of,
    "aria-expanded": expandable ? String(isOpen || Boolean(filter.value.trim())) : null, "aria-selected": String(idOf(node) === chosen), "data-level": row.level, "data-key": row.key, title: node.id},
    expandable ? icon("right") : make("span", {class: "i"}), icon(shape), name(node.name, {long: ONE_LINE}), problem ? icon(problem[0], {label: problem[2], tone: problem[1]}) : null,
    detail ? make("small", {text: detail}) : amountOf(node));
}

const idOf = node => node.default ?? node.id;

let frame = 0, isStale = true;
function draw() {
  isStale = true;
  drawFiltered();
}

/* Draw the loaded rows again through the filter. */
async function drawFiltered() {
  await afterPress();
  cancelAnimationFrame(frame);
  frame = requestAnimationFrame(() => {
    isStale ? flatten() : narrow();
    isStale = false;
    drawn.forEach(element => element.remove());
    drawn = new Map();
    drawRows();
  });
}

function drawRows() {
  const first = Math.max(0, Math.floor(tree.scrollTop / ROW) - AROUND), last = Math.min(rows.length, Math.ceil((tree.scrollTop + tree.clientHeight) / ROW) + AROUND);
  for (const [at, element] of drawn) {
    if (at >= first && at < last) continue;
    element.remove();
    drawn.delete(at);
  }
  for (let at = first; at < last; at += 1) {
    if (drawn.has(at)) continue;
    const element = rowElement(rows[at], at);
    element.style.top = `${at * ROW}px`;
    element.style.paddingInlineStart = `${0.3 + 0.875 * (rows[at].level - 1)}rem`;
    drawn.set(at, element);
    tree.append(element);
    const {cursor, id} = rows[at];
    if (cursor && !lists.get(id).loading) load(id, cursor);
  }
  const at = rows.findIndex(row => row.key === active);
  for (const [number, element] of drawn) element.classList.toggle("active", number === at);
  if (drawn.has(at)) tree.setAttribute("aria-activedescendant", `row-${at}`);
  else tree.removeAttribute("aria-activedescendant");
  sessionStorage.setItem(KEY, JSON.stringify({merged, open: [...open].slice(0, 200), top: tree.scrollTop}));
}

function activate(at) {
  const row = rows[Math.min(Math.max(0, at), rows.length - 1)];
  if (!row) return;
  active = row.key;
  const top = rows.indexOf(row) * ROW;
  if (top < tree.scrollTop) tree.scrollTop = top;
  else if (top + ROW > tree.scrollTop + tree.clientHeight) tree.scrollTop = top + ROW - tree.clientHeight;
  drawRows();
}

async function toggle(row, isOpen = !open.has(row.key)) {
  open[isOpen ? "add" : "delete"](row.key);
  const list = lists.get(row.node.id);
  if (isOpen && !childrenOf(row.node) && (!list || list.error)) await load(row.node.id);
  draw();
}

function openRow(row) {
  if (!row.node) return;
  if (merged && holds(row.node)) toggle(row);
  else navigate(path("t", idOf(row.node)) + (row.node.kind === "namespace" ? "?kind=namespace" : ""));
}

function onKey(event) {
  const at = rows.findIndex(row => row.key === active), row = rows[at], expandable = row?.node && holds(row.node), page = Math.floor(tree.clientHeight / ROW);
  const moves = {ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: rows.length - 1, PageDown: at + page, PageUp: at - page};
  if (event.key in moves) activate(at < 0 && event.key === "ArrowUp" ? 0 : moves[event.key]);
  else if (event.key === "ArrowRight" && expandable) open.has(row.key) ? activate(at + 1) : toggle(row, true);
  else if (event.key === "ArrowLeft" && expandable && open.has(row.key)) toggle(row, false);
  else if (event.key === "ArrowLeft" && row) activate(rows.slice(0, at).findLastIndex(other => other.level < row.level));
  else if (event.key === "Enter" && row) openRow(row);
  else if (event.key === " " && expandable) toggle(row);
  else return;
  event.preventDefault();
  event.stopPropagation();
}

/* Open what is above an object, so that its row can be seen. */
async function reveal(id) {
  chosen = id ?? "";
  if (!id || merged) { draw(); return; }
  const above = [];
  for (let parent = parentId(id); parent; parent = parentId(parent)) above.unshift(parent);
  for (const parent of above) {
    open.add(`+${parent}`);
    if (!lists.has(parent)) await load(parent);
  }
  flatten();
  const at = rows.findIndex(row => row.node && idOf(row.node) === id);
  if (at >= 0 && (at * ROW < tree.scrollTop || (at + 1) * ROW > tree.scrollTop + tree.clientHeight)) tree.scrollTop = Math.max(0, (at - 5) * ROW);
  if (at >= 0 && document.activeElement !== tree) active = rows[at].key;
  draw();
}

/* Show another snapshot: what is open is read again. */
async function changeMoment() {
  shownMoment = asOf();
  lists = new Map();
  await load("");
  await Promise.all([...open].filter(key => key.startsWith("+")).map(key => load(key.slice(1))));
}

async function restore() {
  const saved = JSON.parse(sessionStorage.getItem(KEY) || "{}");
  merged = Boolean(saved.merged);
  mergedButton.setAttribute("aria-pressed", String(merged));
  open = new Set(saved.open);
  await load("");
  await Promise.all([...open].filter(key => key.startsWith("+")).map(key => load(key.slice(1))));
  await new Promise(requestAnimationFrame);
  tree.scrollTop = saved.top ?? 0;
}

/* Read as much of a list again as was loaded, and show it at once when all of it is there. */
async function readAgain(id) {
  const list = lists.get(id), nodes = [];
  if (!list) return;
  list.isOld = list.loading;
  if (list.loading) return;
  list.loading = true;
  let next = null;
  try {
    do {
      const page = await read(id, next);
      nodes.push(...page.nodes);
      next = page.next;
    } while (next && nodes.length < list.nodes.length);
    Object.assign(list, {nodes, next, error: null});
  } catch (error) {
    list.error = error.message;
  }
  finish(id, list);
}

/* Read again what could not be read: the server responds now. */
export function resumeTree() {
  for (const [id, list] of lists) if (list.error && (!id || open.has(`+${id}`))) readAgain(id);
}

/* Read the sources again, and what was loaded of the changed ones. What is folded is read again when it is unfolded. */
export async function refreshTree(sources) {
  const ids = [...lists.keys()].filter(id => id && (merged || sources.includes(id.split("$")[0])));
  for (const id of ids) if (!open.has(`+${id}`)) lists.delete(id);
  await Promise.all(["", ...ids.filter(id => lists.has(id))].map(readAgain));
}

let typing = 0;
function suggest() {
  clearTimeout(typing);
  found = null;
  drawFiltered();
  const text = filter.value.trim();
  if (!text || merged || asOf()) return;
  typing = setTimeout(async () => {
    let nodes = [];
    try {
      nodes = (await find(`/api/v1/suggest?limit=50&q=${encode(text.slice(0, 200))}`))?.nodes ?? [];
    } catch (error) {
      // A query that is not understood narrows the loaded rows only.
      if (!(error instanceof ApiError && error.status === 400)) throw error;
    }
    if (filter.value.trim() !== text) return;
    found = nodes;
    drawFiltered();
  }, 120);
}

export function startTree() {
  tree.append(spacer);
  onOverview(overview => {
    tables = new Map(overview.sources.filter(source => source.freshness.state !== "never").map(source => [source.name, source.tables]));
    draw();
  });
  tree.addEventListener("scroll", () => requestAnimationFrame(drawRows), {passive: true});
  new ResizeObserver(() => drawRows()).observe(tree);
  tree.addEventListener("keydown", onKey);
  tree.addEventListener("focus", () => { if (!active && rows.length) activate(0); });
  tree.addEventListener("click", event => {
    const element = around(event, "[data-key]"), row = rows.find(each => each.key === element?.dataset.key);
    if (!row) return;
    active = row.key;
    if (around(event, "svg") === element?.firstElementChild && holds(row.node)) toggle(row);
    else if (holds(row.node) && !merged) { toggle(row, true); openRow(row); }
    else openRow(row);
  });
  filter.addEventListener("input", suggest);
  filter.addEventListener("keydown", event => { if (event.key === "ArrowDown") { tree.focus(); activate(0); } });
  mergedButton.addEventListener("click", () => {
    merged = !merged;
    mergedButton.setAttribute("aria-pressed", String(merged));
    lists = new Map();
    open = new Set();
    draw();
    load("");
  });
  let ready = restore();
  onRoute(route => {
    if (asOf() !== shownMoment) ready = ready.then(changeMoment);
    ready.then(() => reveal(route.view === "object" ? route.argument : null));
  });
}

