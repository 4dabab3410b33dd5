// The shell: navigation, header, theme, keys. Views are loaded by the router.
import {badges, freshTexts, isFresh, onOverview, readOverview} from "./attention.js";
import {asOf, readPerson} from "./api.js";
import {around, byId, icon, make, name} from "./dom.js";
import {ago, startAges} from "./format.js";
import {FOOT_VIEWS, isShortcut, showKeys, VIEWS} from "./keys.js";
import {onChange, POLL, showOutage, startLive} from "./live.js";
import {startPalette} from "./palette.js";
import {UI} from "./parts.js";
import {attempt, navigate, onRoute, refresh, resume, setReachable, startRouter} from "./router.js";
import {csrfToken, currentToken, setPerson, signOut} from "./sign_in.js";
import {refreshTree, resumeTree, startTree} from "./tree.js";

const root = document.documentElement, side = byId("side");
const SHORT = ["overview", "search", "plans", "runs", "drift"];

const entryOf = address => address || "overview";

/** @param {import("./keys.js").View} view @param {...any} more */
const entry = ({shape, label, address}, ...more) => make("a", {href: `${UI}/${address}`, "data-entry": entryOf(address)}, icon(shape), label, more);
/** @param {import("./keys.js").View} view */
const counted = view => entry(view, make("b", {"data-badge": entryOf(view.address)}));

byId("views").append(...VIEWS.map(counted));
byId("foot").append(...FOOT_VIEWS.map(view => entry(view)), make("a", {href: "/docs", text: "API"}));
// The tree is in the drawer.
const explore = make("button", {type: "button", onclick: event => { event.stopPropagation(); setDrawerOpen(true); byId("tree").focus(); }}, icon("namespace"), "Explore");
byId("bar").append(...VIEWS.filter(({address}) => SHORT.includes(entryOf(address))).map(counted));
byId("bar").firstElementChild?.after(explore);
for (const holder of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-i]"))) holder.prepend(icon(holder.dataset.i ?? ""));

onRoute(route => {
  for (const anchor of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-entry]"))) {
    if (anchor.dataset.entry === route.entry) anchor.setAttribute("aria-current", "page");
    else anchor.removeAttribute("aria-current");
  }
  setDrawerOpen(false);
});

// The theme: the system's, unless the user has chosen one.
const isDark = () => (root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
root.dataset.theme = localStorage.getItem("theme") || "";
byId("theme").addEventListener("click", () => {
  root.dataset.theme = isDark() ? "light" : "dark";
  localStorage.setItem("theme", root.dataset.theme);
});

// The navigation as a drawer on a phone, and closed with [ elsewhere.
const opener = byId("menu");
function setDrawerOpen(open) {
  side.toggleAttribute("data-open", open);
  opener.setAttribute("aria-expanded", open);
}
opener.addEventListener("click", event => {
  event.stopPropagation();
  setDrawerOpen(!side.hasAttribute("data-open"));
});
document.addEventListener("click", event => { if (!side.contains(/** @type {Node} */ (event.target))) setDrawerOpen(false); });

const out = byId("sign-out");
out.addEventListener("click", () => attempt(signOut));
async function showPerson() {
  const me = await readPerson();
  setPerson(me);
  out.hidden = !currentToken() && !csrfToken();
  const person = byId("person");
  person.title = `${me.name}, ${me.role}: ${me.scopes.join(", ")}`;
  person.append(name(me.name), make("small", {text: me.role}));
}

let previousKey = "";
const LIST_KEYS = ["j", "k", "x", "c", ".", "Enter", "ArrowDown", "ArrowUp"];
// One promise for all keys: imports of one module that wait for the network need not be settled in the order of the keys.
let listKeys = null;
function pressInList(key) {
  listKeys ??= import("./views/list_keys.js");
  listKeys.then(({onListKey}) => onListKey(key));
}
function go(pressed) {
  const view = VIEWS.find(({key}) => key === pressed);
  if (view) navigate(`${UI}/${view.address}`);
}
document.addEventListener("keydown", event => {
  if (event.key === "Escape") setDrawerOpen(false);
  if (!isShortcut(event)) return;
  if (previousKey !== "g" && !around(event, "[role=tree]") && LIST_KEYS.includes(event.key)) pressInList(event.key);
  if (event.key.startsWith("Arrow") && document.activeElement?.matches("tr, li")) event.preventDefault();
  if (event.key === "?") showKeys();
  else if (event.key === "[") document.body.toggleAttribute("data-closed");
  else if (previousKey === "g" && event.key === "t") byId("tree").focus();
  else if (previousKey === "g") go(event.key);
  previousKey = event.key;
});

const handle = byId("handle");
const resize = width => root.style.setProperty("--side", `${Math.min(480, Math.max(200, width))}px`);
if (localStorage.getItem("side")) resize(Number(localStorage.getItem("side")));
handle.addEventListener("pointerdown", event => {
  handle.setPointerCapture(event.pointerId);
  const move = moved => resize(moved.clientX);
  handle.addEventListener("pointermove", move);
  handle.addEventListener("pointerup", released => {
    handle.removeEventListener("pointermove", move);
    localStorage.setItem("side", String(released.clientX));
  }, {once: true});
});

// The header says whether the page is up to date, and how many sources are fresh.
const live = make("span", {class: "live"}), fresh = make("a", {class: "live", href: `${UI}/sources`});
const moment = make("button", {class: "btn bare", type: "button", id: "moment", "aria-haspopup": "dialog", title: "Show a past state", onclick: () => attempt(async () => (await import("./views/snapshots.js")).chooseSnapshot())});
onRoute(() => moment.replaceChildren(icon("clock"), make("span", {text: asOf() ? "Past" : "Current"})));
byId("tools").append(moment, fresh, live);
onOverview(overview => {
  for (const [entry, number, tone, text] of badges(overview)) {
    for (const badge of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll(`[data-badge=${entry}]`))) {
      badge.className = number ? tone : "";
      badge.title = number ? text(number) : "";
      badge.replaceChildren(...number ? [make("span", {"aria-hidden": "true", text: String(number)}), make("span", {class: "only-listeners", text: ` (${text(number)})`})] : []);
    }
  }
  const all = overview.sources.every(isFresh), [shown, label] = freshTexts(overview);
  fresh.className = `live ${all ? "" : "tone-warn"}`;
  fresh.setAttribute("aria-label", label);
  fresh.replaceChildren(icon(all ? "ok" : "stale"), make("span", {text: shown}));
});
let seen = null, way = "";
/** @type {Record<string, [string, string]>} */
const WAYS = {"": ["Connecting", "The stream of events is being opened"], live: ["Live", "Changes are shown as they happen"],
  polling: [`Every ${POLL / 1000} s`, "The stream of events does not come through, perhaps because of a proxy: what is shown is read again"]};
function report(problem, wait, used = way) {
  way = problem ? "" : used;
  setReachable(!showOutage(problem, seen, wait));
  if (!problem) {
    seen = new Date().toISOString();
    resume();
    resumeTree();
  }
  live.className = problem ? "live tone-bad" : "live";
  const [word, title] = WAYS[way];
  live.title = problem ? problem.message : title;
  live.replaceChildren(problem ? icon("gone") : way === "polling" ? icon("clock") : make("i", {class: way && "on"}), make("span", {class: way || problem ? null : "only-listeners"}, problem ? "Not up to date" : word, problem && seen ? [", as of ", ago(seen)] : null));
}

attempt(showPerson);
startPalette();
startTree();
startRouter();
startAges();
onChange((parts, sources, isRead) => {
  if (sources.length) refreshTree(sources);
  refresh(parts, sources);
  if (parts.includes("overview") && !isRead && location.pathname !== `${UI}/`) attempt(readOverview);
});
startLive(report, location.pathname === `${UI}/`);
report(null, 0);
