// What needs attention, in words, with the address of the next action.
import {encode, get, send} from "./api.js";
import {make, name} from "./dom.js";
import {clock, count, duration, plural, words} from "./format.js";
import {button, path, sentences, UI, UNREAD} from "./parts.js";
import {announce, attempt, reload} from "./router.js";

const listeners = [];
let newest = null;

/* Called with each overview that was read. */
export function onOverview(listener) {
  listeners.push(listener);
  if (newest) listener(newest);
}

export async function readOverview(signal) {
  newest = await get("/api/v1/overview", signal);
  for (const listener of listeners) listener(newest);
  return newest;
}

const SOURCE = {...UNREAD, overdue: "was not crawled as scheduled"};
const DRIFT = {high: "High drift", medium: "Medium drift", low: "Low drift"};

const action = (href, text, kind = "") => make("a", {class: `btn ${kind}`, href, text});

/** @type {[number, string][]} */
const SNOOZES = [[4, "4 hours"], [24, "1 day"], [168, "1 week"]];

/* Change the snooze of an entry, then read the overview again. The focus goes to what is snoozed, or to the heading. */
const change = (method, item, body, told) => attempt(async () => {
  const changed = await send(method, `/api/v1/attention/${encode(item.key)}`, body);
  await reload();
  /** @type {HTMLElement | null} */ (document.querySelector("#snoozed > summary") ?? document.querySelector("h1"))?.focus();
  announce(told(changed));
});

/* A menu that closes by Escape, and when the focus leaves it. */
function snooze(item, title) {
  const summary = make("summary", {class: "btn bare", "aria-label": `Snooze: ${title}`, text: "Snooze"});
  const menu = make("details", {class: "snooze", name: "snooze"}, summary, make("div", {}, make("span", {class: "q small", text: "Until it changes, at most"}), SNOOZES.map(([hours, text]) =>
    button(text, () => change("PUT", item, {digest: item.digest, hours}, changed => `Snoozed until it changes, or until ${clock(changed.snoozed_until)}`)))));
  menu.addEventListener("keydown", event => {
    if (event.key !== "Escape") return;
    menu.open = false;
    summary.focus();
  });
  menu.addEventListener("focusout", event => { if (event.relatedTarget instanceof Node && !menu.contains(event.relatedTarget)) menu.open = false; });
  return menu;
}

/* A row for `rows`: the state, the title, the detail, the next action and the snooze. */
export function attentionRow(item) {
  const row = {state: item.state, time: item.since, ...texts(item)};
  if (!item.snoozed_until) return {...row, action: make("div", {class: "do"}, row.action, snooze(item, typeof row.title === "string" ? row.title : row.title.textContent))};
  return {...row, detail: `until it changes, or until ${clock(item.snoozed_until)}`, action: make("div", {class: "do"}, row.action, button("Show again", () => change("DELETE", item, null, () => "It is shown again")))};
}

/* What a held plan would do, and why it is held: "1 deregister_table" in words. */
const heldText = detail => words(detail.replace(/(\d+) ([a-z]+)_(table|namespace)\b/g, (_, number, verb, what) => `${verb} ${plural(Number(number), what)}`));

function texts(item) {
  const sources = Object.entries(item.by_source).map(([source, number]) => `${source || "in no catalog"}: ${count(number)}`).join(", ");
  if (item.kind === "plan") return {title: make("span", {}, "Plan of ", name(item.subject), " is held"), detail: item.detail ? heldText(item.detail) : null, action: action(path("plans", item.target), "Review", "main")};
  if (item.kind === "source") return {state: item.state === "overdue" ? "stale" : item.state, title: make("span", {}, "Source ", name(item.subject), ` ${SOURCE[item.state] ?? words(item.state)}`),
    detail: item.detail ? sentences(item.detail.replace(`${item.subject}: `, "")) : (item.state === "overdue" && item.since ? `due ${duration((Date.now() - Date.parse(item.since)) / 1000)} ago` : null), action: action(path("t", item.subject), "Open")};
  if (item.kind === "tables") return {title: `${plural(item.count, "table is", "tables are")} ${words(item.state)}`, detail: sources, action: action(`${UI}/search?${new URLSearchParams({q: `state:${item.state}`})}`, "See all")};
  if (item.kind === "drift") return {title: `${DRIFT[item.state] ?? words(item.state)}: ${plural(item.count, "difference")}`, detail: [item.detail && words(item.detail), sources].filter(Boolean).join(" · "),
    action: action(`${UI}/drift?severity=${item.state}`, "See all")};
  return {title: make("span", {}, `${plural(item.count, "notification was", "notifications were")} not delivered to `, name(item.subject)), detail: item.detail, action: action(`${UI}/settings`, "Open")};
}

/* Numbers beside the entries of the navigation: [entry, number, tone, text]. */
export const badges = overview => [
  ["plans", overview.attention.filter(item => item.kind === "plan").length, "warn", number => `${number} held`],
  ["drift", overview.drift.high ?? 0, "bad", number => `${number} high`],
  ["runs", overview.active_runs, "run", number => `${number} running`],
  ["overview", overview.attention.filter(item => item.severity === "high" && !item.snoozed_until).length, "bad", number => `${number} of high severity`],
];

/* How many sources are fresh, shown and in words. @returns {[string, string]} */
export const freshTexts = overview => {
  const fresh = count(overview.sources.filter(isFresh).length), all = overview.sources.length;
  return [`${fresh} of ${count(all)} fresh`, `${fresh} of ${plural(all, "source")} fresh`];
};

export const isFresh = source => source.freshness.state === "ok" && source.overdue_since === null;
