// Which view an address asks for, and moving between addresses without loading the document again.
import {asOf, get, Unreachable} from "./api.js";
import {afterPress, around, byId, icon, make} from "./dom.js";
import {clock} from "./format.js";
import {button, empty, UI} from "./parts.js";

const main = byId("main"), crumbs = byId("crumbs"), announcer = byId("announcer");
const scrolled = new Map(), listeners = [];
// The requests of the view that is shown end with it; those of one that is being loaded, when another is asked for.
let shown = new AbortController(), loading = new AbortController(), current = null;
// Of the view that is being loaded: whether it gets the focus, and keeps the scroll position. A reload in between must not forget that.
let pending = null;

// Path below /ui, module below views/, and the entry of the navigation that it belongs to.
/** @type {[RegExp, string, string][]} */
const ROUTES = [
  [/^$/, "overview", "overview"], [/^sources$/, "sources", "overview"], [/^t\/(.+)$/, "object", "object"], [/^search$/, "search", "search"],
  [/^mirrors$/, "mirrors", "mirrors"], [/^mirrors\/(.+)$/, "mirror", "mirrors"], [/^plans$/, "plans", "plans"], [/^plans\/(.+)$/, "plan", "plans"],
  [/^runs$/, "runs", "runs"], [/^runs\/(.+)$/, "run", "runs"], [/^drift$/, "drift", "drift"], [/^declare$/, "declare", "drift"],
  [/^datasets$/, "datasets", "datasets"], [/^datasets\/(.+)$/, "dataset", "datasets"], [/^changes$/, "changes", "changes"], [/^audit$/, "audit", "audit"],
  [/^reports$/, "reports", "reports"], [/^reports\/(.+)$/, "report", "reports"], [/^settings$/, "settings", "settings"],
];

// Addresses of the first page, which were fragments: links to them still work.
const FRAGMENTS = {"": "", tree: "", search: "search?q=", table: "t/", source: "t/", runs: "runs", run: "runs/", plans: "plans", plan: "plans/", drift: "drift?severity=",
  declare: "declare?location="};

function fromFragment(hash) {
  const [, kind, ...given] = hash.split("/");
  if (FRAGMENTS[kind] === undefined) return null;
  return `${UI}/${given.length && /[=/]$/.test(FRAGMENTS[kind]) ? FRAGMENTS[kind] + given.join("/") : FRAGMENTS[kind].split("?")[0].replace(/\/$/, "s")}`;
}

function match() {
  const below = location.pathname.slice(UI.length + 1);
  for (const [pattern, view, entry] of ROUTES) {
    const [found, argument] = pattern.exec(below) || [];
    if (found !== undefined) return {view, entry, argument: argument === undefined ? undefined : decodeURIComponent(argument)};
  }
  throw new Error(`there is no page at ${location.pathname}`);
}

/* Called after each change of address, with {view, entry, argument}. */
export const onRoute = listener => listeners.push(listener);

/* Go to an address below /ui. The snapshot stays, unless `present` is set or the address has another. */
export function navigate(address, {replace = false, present = false, again = false} = {}) {
  remember();
  const moment = asOf(), to = new URL(address, location.href);
  if (moment && !present && !to.searchParams.has("as_of")) to.searchParams.set("as_of", moment);
  address = to.pathname + to.search;
  history[replace ? "replaceState" : "pushState"]({key: crypto.randomUUID?.() ?? String(performance.now())}, "", address);
  return show({again});
}

/* Change query parameters of the address: the view is shown again, and what a person has in hand beside its filters stays. */
export const setQuery = (values, options) => navigate(addressWith(values), {...options, again: true});

/* The same for a view that shows the change itself. */
export function setQueryInPlace(values, {replace = false} = {}) {
  remember();
  history[replace ? "replaceState" : "pushState"](replace ? history.state : {key: String(performance.now())}, "", addressWith(values));
}

/* Show the present, or the snapshot at the end of a run or at a time. */
export const setMoment = moment => navigate(addressWith({as_of: moment}), {present: !moment});

function addressWith(values) {
  const address = new URL(location.href);
  for (const [key, value] of Object.entries(values)) {
    if (value === undefined || value === null || value === "") address.searchParams.delete(key);
    else address.searchParams.set(key, value);
  }
  return address.pathname + address.search;
}

// Buttons that may need the service: not those that copy, load more or try again.
const WRITES = "button.btn:not(.copy, .more *, .failure *, .newer *)";

/* Disable what cannot be done while the server does not respond, and enable it again. */
export function setReachable(isReachable) {
  for (const each of /** @type {NodeListOf<HTMLButtonElement>} */ (main.querySelectorAll(isReachable ? "[data-gone]" : `${WRITES}:enabled`))) {
    each.disabled = each.toggleAttribute("data-gone", !isReachable);
    each.title = isReachable ? "" : "The server does not respond";
  }
}

// The views that show a snapshot. The others show the present, also while one is selected.
const HAVE_HISTORY = ["object", "datasets", "dataset"];
const banner = byId("past");
let moments = new Map();

/* The banner of a snapshot, and what cannot be done meanwhile. */
async function showMoment(route, title) {
  const moment = asOf();
  document.body.toggleAttribute("data-past", Boolean(moment));
  banner.hidden = !moment;
  if (!moment) return;
  const known = HAVE_HISTORY.includes(route?.view);
  if (!known) for (const each of /** @type {NodeListOf<HTMLButtonElement>} */ (main.querySelectorAll(WRITES))) Object.assign(each, {disabled: true, title: "Not while a snapshot is selected"});
  const describe = at => banner.replaceChildren(icon("stale"), make("span", {class: "grow"}, make("strong", {text: known ? "A past state is shown" : `${title} shows the present`}),
    known ? `, as of ${at}. Facts without a history are left out, and nothing can be changed.` : `: it has no history. The snapshot of ${at} stays selected.`), button("Back to the present", () => setMoment(""), {kind: "main"}));
  describe(moments.get(moment) ?? (Number.isNaN(Date.parse(moment)) ? moment : clock(moment)));
  if (moments.has(moment) || !/^[0-9a-f-]+$/.test(moment)) return;
  const {snapshots} = await get("/api/v1/snapshots?limit=1000").catch(() => ({snapshots: []}));
  moments = new Map(snapshots.map(each => [each.run, clock(each.at)]));
  if (moments.has(moment) && asOf() === moment) describe(moments.get(moment));
}

// What a view shows of the live status. Others are read when they are opened, or follow a run of their own.
const FOLLOWS = {overview: ["overview", "runs"], sources: ["overview"], runs: ["runs"], plans: ["plans"], mirrors: ["overview", "plans", "runs"], drift: ["overview"],
  plan: ["plans", "runs"], mirror: ["overview", "plans", "runs"]};
// What is shown of all sources, and changes with each of them.
const FOLLOW_SOURCES = ["datasets", "dataset", "changes"];

const isBusy = () => Boolean(document.querySelector("dialog[open]") || document.activeElement?.matches("main :is(input, textarea, select)"));

/* Show the view again if it shows what has changed; later, if a person is typing in it. */
export function refresh(parts, sources) {
  const {view, argument = ""} = current ?? {};
  // A source shows its latest runs: a crawl that failed makes no revision.
  const isSource = view === "object" && !argument.includes("$");
  const concerned = view === "object" ? sources.includes(argument.split("$")[0]) || (isSource && parts.includes("runs")) : FOLLOW_SOURCES.includes(view) ? sources.length > 0 : parts.some(part => FOLLOWS[view]?.includes(part));
  if (!concerned) return;
  if (isBusy()) setTimeout(() => refresh(parts, sources), 2000);
  else show({again: true, focus: false, live: true});
}

/* Show the same address again. What a person has in hand stays. */
export const reload = () => show({again: true, focus: false});

function remember() {
  if (history.state?.key) scrolled.set(history.state.key, main.scrollTop);
}

export function announce(text, tone = "ok") {
  announcer.replaceChildren(text ? icon(tone === "bad" ? "bad" : "ok", {tone}) : "", text);
  announcer.className = tone;
}

/* Run an action of the user, and show its error if it fails. */
export async function attempt(action) {
  try {
    await action();
  } catch (error) {
    if (error.name !== "AbortError") announce(error.hint ? `${error.message} (${error.hint})` : error.message, "bad");
  }
}

/* The module of a view. Why it could not be loaded is asked the API: the browser's words do not say it. */
async function load(view) {
  try {
    return await import(`./views/${view}.js`);
  } catch (error) {
    await get("/api/v1/me");
    throw Object.assign(new Error("This view could not be loaded"), {cause: error, hint: "The service may have a newer page: load this page again."});
  }
}

/* Load the view again that could not be shown while the server did not respond. */
export function resume() {
  if (main.querySelector("[data-unreachable]")) reload();
}

/** The view that was asked for last. @type {Promise<any>} */
let newest = Promise.resolve();

/* Show the view of the address. It ends when that is there, or what was asked for meanwhile: whoever waits goes on with what is shown then. */
const show = how => (newest = showOnce(how));

async function showOnce({again = false, focus = true, live = false} = {}) {
  loading.abort();
  loading = new AbortController();
  if (!again) {
    shown.abort();
    shown = new AbortController();
  }
  current = null;
  const wanted = pending = {focus: focus || Boolean(pending?.focus), again: again && (pending?.again ?? true), live: live && (pending?.live ?? true)};
  const signal = AbortSignal.any([shown.signal, loading.signal]), keep = wanted.again ? await import("./views/keep.js") : null;
  if (signal.aborted) return newest;
  const late = setTimeout(() => main.setAttribute("aria-busy", "true"), 200);
  const settle = (title, trail, nodes) => {
    clearTimeout(late);
    pending = null;
    loading = new AbortController();
    main.removeAttribute("aria-busy");
    document.title = title ? `${title} · Lance Federator` : "Lance Federator";
    crumbs.replaceChildren(...trail.flatMap((crumb, at) => [crumb.dataset.parent === undefined ? (at ? icon("right") : "") : siblingsButton(crumb), crumb]));
    crumbs.lastElementChild?.setAttribute("aria-current", "page");
    const top = main.scrollTop;
    if (keep) keep.showAgain(main, nodes.filter(Boolean), {show: wanted.live ? reload : null, isFiltered: wanted.focus});
    else main.replaceChildren(...nodes.filter(Boolean));
    showMoment(current, title);
    main.scrollTop = keep ? top : scrolled.get(history.state?.key) ?? 0;
    const active = document.activeElement;
    if (wanted.focus && !active?.closest("[data-keep-focus]") && !(keep && main.contains(active))) (main.querySelector("h1") ?? main).focus();
  };
  try {
    const route = current = match();
    if (!again) for (const listener of listeners) listener(route);
    const module = await load(route.view), query = location.search;
    const view = await module.show({argument: route.argument, query: new URLSearchParams(query), signal});
    await afterPress();
    if (signal.aborted) return newest;
    // A tab was chosen, or a text was searched for, while the view was read for another one.
    if (location.search !== query) return show({again: true, focus, live});
    settle(view.title, view.crumbs ?? [make("span", {text: view.title})], view.nodes);
    view.after?.();
  } catch (error) {
    if (signal.aborted) return newest;
    settle("Error", [make("span", {text: "Error"})], [failure(error)]);
  }
}

/* The arrow before a step of the breadcrumb: the palette lists what is beside the step. */
const siblingsButton = crumb => make("button", {class: "btn bare icon", type: "button", "aria-label": `Beside ${crumb.textContent}`, title: "What is beside it", "data-inside": crumb.dataset.parent}, icon("right"));

const TITLES = {403: "You may not see this", 404: "Not found"};

/* An error in the part of the page that failed, with its own retry. */
export function failure(error) {
  const isGone = error instanceof Unreachable, title = isGone ? "The server does not respond" : TITLES[error.status] ?? "This could not be shown";
  const heading = make("h1", {tabindex: "-1", text: title});
  return make("section", {class: "failure", "data-unreachable": isGone}, heading, empty(make("span", {role: "alert", text: isGone ? "This view is loaded when it responds again" : error.message}), error.hint, {
    state: error.status === 404 ? "skipped" : error.status === 403 ? "denied" : "failed", action: button("Try again", reload)}));
}

export function startRouter() {
  document.addEventListener("click", event => {
    const anchor = /** @type {HTMLAnchorElement | null} */ (around(event, "a[href]"));
    if (!anchor || event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    const address = new URL(anchor.href, location.href);
    if (address.origin !== location.origin || !address.pathname.startsWith(`${UI}/`) || anchor.target) return;
    event.preventDefault();
    announce("");
    navigate(address.pathname + address.search);
  });
  addEventListener("popstate", () => show());
  addEventListener("hashchange", () => useFragment());
  if (!useFragment()) {
    history.replaceState({key: history.state?.key ?? "first"}, "");
    show({focus: false});
  }
}

function useFragment() {
  const address = location.hash.startsWith("#/") ? fromFragment(location.hash) : null;
  if (address !== null) navigate(address, {replace: true});
  return address !== null;
}
