// The shell: navigation, header, theme, keys. Views are loaded by the router.
import {badges, freshText, isFresh, onOverview, readOverview} from "./attention.js";
import {byId, icon, make} from "./dom.js";
import {ago} from "./format.js";
import {FOOT, isShortcut, showKeys, VIEWS} from "./keys.js";
import {onChange, showOutage, startLive} from "./live.js";
import {startPalette} from "./palette.js";
import {UI} from "./parts.js";
import {attempt, navigate, onRoute, refresh, startRouter} from "./router.js";
import {csrfToken, currentToken, readPerson, setPerson, signOut} from "./sign_in.js";
import {refreshTree, startTree} from "./tree.js";

const root = document.documentElement, side = byId("side");
const SHORT = ["overview", "search", "plans", "runs", "drift"];

const entryOf = address => address || "overview";

/** @param {import("./keys.js").View} view */
function entry([shape, label, address]) {
  return make("a", {href: `${UI}/${address}`, "data-entry": entryOf(address)}, icon(shape), label, make("b", {"data-badge": entryOf(address)}));
}

byId("views").append(...VIEWS.map(entry));
byId("foot").append(...FOOT.map(entry), make("a", {href: "/docs", text: "API"}));
byId("bar").append(...VIEWS.filter(([, , address]) => SHORT.includes(entryOf(address))).map(entry));
for (const holder of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-i]"))) holder.prepend(icon(holder.dataset.i ?? ""));

onRoute(route => {
  for (const anchor of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-entry]"))) {
    if (anchor.dataset.entry === route.entry) anchor.setAttribute("aria-current", "page");
    else anchor.removeAttribute("aria-current");
  }
  swing(false);
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
function swing(open) {
  side.toggleAttribute("data-open", open);
  opener.setAttribute("aria-expanded", open);
}
opener.addEventListener("click", event => {
  event.stopPropagation();
  swing(!side.hasAttribute("data-open"));
});
document.addEventListener("click", event => { if (!side.contains(/** @type {Node} */ (event.target))) swing(false); });

const out = byId("sign-out");
out.addEventListener("click", () => attempt(signOut));
async function showPerson() {
  const me = await readPerson();
  setPerson(me);
  out.hidden = !currentToken() && !csrfToken();
  const person = byId("person");
  person.title = `${me.name}, ${me.role}: ${me.scopes.join(", ")}`;
  person.replaceChildren(make("span", {text: me.name}));
}

let lead = "";
function go(pressed) {
  const view = VIEWS.find(([, , , key]) => key === pressed);
  if (view) navigate(`${UI}/${view[2]}`);
}
document.addEventListener("keydown", event => {
  if (event.key === "Escape") swing(false);
  if (!isShortcut(event)) return;
  if (event.key === "?") showKeys();
  else if (event.key === "[") document.body.toggleAttribute("data-closed");
  else if (lead === "g" && event.key === "t") byId("tree").focus();
  else if (lead === "g") go(event.key);
  lead = event.key;
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
const live = make("span", {class: "live"}), fresh = make("a", {class: "live", href: `${UI}/`});
byId("tools").append(fresh, live);
onOverview(overview => {
  for (const [entry, number, tone, text] of badges(overview)) {
    for (const badge of document.querySelectorAll(`[data-badge=${entry}]`)) {
      badge.className = number ? tone : "";
      badge.replaceChildren(...number ? [make("span", {"aria-hidden": "true", text: String(number)}), make("span", {class: "only-listeners", text: ` (${text(number)})`})] : []);
    }
  }
  const all = overview.sources.every(isFresh);
  fresh.className = `live ${all ? "" : "tone-warn"}`;
  fresh.setAttribute("aria-label", freshText(overview));
  fresh.replaceChildren(icon(all ? "ok" : "stale"), make("span", {text: freshText(overview)}));
});
let seen = null;
function report(problem, wait) {
  showOutage(problem, seen, wait);
  if (!problem) seen = new Date().toISOString();
  live.className = problem ? "live tone-bad" : "live";
  live.title = problem ? problem.message : "Changes are shown as they happen";
  live.replaceChildren(problem ? icon("gone") : make("i"), make("span", {}, problem ? "Not up to date" : "Live", problem && seen ? [", as of ", ago(seen)] : null));
}

attempt(showPerson);
startPalette();
startTree();
startRouter();
onChange((parts, sources) => {
  if (sources.length) refreshTree(sources);
  refresh(parts, sources);
  if (parts.includes("overview") && location.pathname !== `${UI}/`) attempt(readOverview);
});
startLive(report, location.pathname === `${UI}/`);
report(null, 0);
