// Which view an address asks for, and moving between addresses without loading the document again.
import {Unreachable} from "./api.js";
import {around, byId, icon, make} from "./dom.js";
import {button, empty, UI} from "./parts.js";

const main = byId("main"), crumbs = byId("crumbs"), announcer = byId("announcer");
const scrolled = new Map(), listeners = [];
let running = new AbortController(), current = null;

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

export function navigate(address, {replace = false} = {}) {
  remember();
  history[replace ? "replaceState" : "pushState"]({key: crypto.randomUUID?.() ?? String(performance.now())}, "", address);
  return show();
}

/* Change query parameters of the address; the view is shown again. */
export const setQuery = (values, options) => navigate(addressWith(values), options);

/* The same for a view that shows the change itself. */
export function setQueryInPlace(values, {replace = false} = {}) {
  remember();
  history[replace ? "replaceState" : "pushState"](replace ? history.state : {key: String(performance.now())}, "", addressWith(values));
}

function addressWith(values) {
  const address = new URL(location.href);
  for (const [key, value] of Object.entries(values)) {
    if (value === undefined || value === null || value === "") address.searchParams.delete(key);
    else address.searchParams.set(key, value);
  }
  return address.pathname + address.search;
}

// What a view shows of the live status. Others are read when they are opened, or follow a run of their own.
const FOLLOWS = {overview: ["overview", "runs"], sources: ["overview"], runs: ["runs"], plans: ["plans"], mirrors: ["plans", "runs"], drift: ["overview"]};

const isBusy = () => Boolean(document.querySelector("dialog[open]") || document.activeElement?.matches("main :is(input, textarea, select)"));

/* Show the view again if it shows what has changed; later, if a person is typing in it. */
export function refresh(parts, sources) {
  const {view, argument = ""} = current ?? {};
  const concerned = view === "object" ? sources.includes(argument.split("$")[0]) : parts.some(part => FOLLOWS[view]?.includes(part));
  if (!concerned) return;
  if (isBusy()) setTimeout(() => refresh(parts, sources), 2000);
  else reload();
}

export const reload = () => show({keepScroll: true, focus: false});

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

async function show({keepScroll = false, focus = true} = {}) {
  running.abort();
  running = new AbortController();
  current = null;
  const {signal} = running, top = keepScroll ? main.scrollTop : null;
  const late = setTimeout(() => main.setAttribute("aria-busy", "true"), 200);
  const settle = (title, trail, nodes) => {
    clearTimeout(late);
    main.removeAttribute("aria-busy");
    document.title = title ? `${title} · Lance Federator` : "Lance Federator";
    crumbs.replaceChildren(...trail.flatMap((crumb, at) => [at ? icon("right") : "", crumb]));
    crumbs.lastElementChild?.setAttribute("aria-current", "page");
    main.replaceChildren(...nodes.filter(Boolean));
    main.scrollTop = top ?? scrolled.get(history.state?.key) ?? 0;
    if (focus && !document.activeElement?.closest("[data-keep-focus]")) (main.querySelector("h1") ?? main).focus();
  };
  try {
    const route = current = match();
    for (const listener of listeners) listener(route);
    const module = await import(`./views/${route.view}.js`);
    const view = await module.show({argument: route.argument, query: new URLSearchParams(location.search), signal});
    if (signal.aborted) return;
    settle(view.title, view.crumbs ?? [make("span", {text: view.title})], view.nodes);
    view.after?.();
  } catch (error) {
    if (signal.aborted || error.name === "AbortError") return;
    settle("Error", [make("span", {text: "Error"})], [failure(error)]);
  }
}

const TITLES = {403: "You may not see this", 404: "Not found"};

/* An error in the part of the page that failed, with its own retry. */
export function failure(error) {
  const title = error instanceof Unreachable ? "The server does not respond" : TITLES[error.status] ?? "This could not be shown";
  const heading = make("h1", {tabindex: "-1", text: title});
  return make("section", {class: "failure"}, heading, empty(make("span", {role: "alert", text: error.message}), error.hint, {
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
