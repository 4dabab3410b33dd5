// What needs attention, in words, with the address of the next action.
import {get} from "./api.js";
import {make, name} from "./dom.js";
import {count, duration, plural, words} from "./format.js";
import {path, UI} from "./parts.js";

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

const SOURCE = {failed: "could not be read", partial: "was read in part", never: "was never crawled", overdue: "was not crawled as scheduled"};
const DRIFT = {high: "High drift", medium: "Medium drift", low: "Low drift"};

const action = (href, text) => make("a", {class: "btn", href, text});

/* A row for `rows`: the state, the title, the detail and the next action. */
export function attentionRow(item) {
  const sources = Object.entries(item.by_source).map(([source, number]) => `${source || "in no catalog"}: ${count(number)}`).join(", "), row = {state: item.state, time: item.since};
  if (item.kind === "plan") return {...row, title: make("span", {}, "Plan of ", name(item.subject), " is held"), detail: item.detail ? words(item.detail) : null, action: action(path("plans", item.target), "Review")};
  if (item.kind === "source") return {...row, state: item.state === "overdue" ? "stale" : item.state, title: make("span", {}, "Source ", name(item.subject), ` ${SOURCE[item.state] ?? words(item.state)}`),
    detail: item.detail ?? (item.state === "overdue" && item.since ? `due ${duration((Date.now() - Date.parse(item.since)) / 1000)} ago` : null), action: action(path("t", item.subject), "Open")};
  if (item.kind === "tables") return {...row, title: `${plural(item.count, "table is", "tables are")} ${words(item.state)}`, detail: sources, action: action(`${UI}/search?${new URLSearchParams({q: `state:${item.state}`})}`, "See all")};
  if (item.kind === "drift") return {...row, title: `${DRIFT[item.state] ?? words(item.state)}: ${plural(item.count, "difference")}`, detail: [item.detail && words(item.detail), sources].filter(Boolean).join(" · "),
    action: action(`${UI}/drift?severity=${item.state}`, "See all")};
  return {...row, title: make("span", {}, `${plural(item.count, "notification was", "notifications were")} not delivered to `, name(item.subject)), detail: item.detail, action: action(`${UI}/settings`, "Open")};
}

/* Numbers beside the entries of the navigation: [entry, number, tone, text]. */
export const badges = overview => [
  ["plans", overview.attention.filter(item => item.kind === "plan").length, "warn", number => `${number} held`],
  ["drift", overview.drift.high ?? 0, "bad", number => `${number} high`],
  ["runs", overview.active_runs, "run", number => `${number} running`],
  ["overview", overview.attention.filter(item => item.severity === "high").length, "bad", number => `${number} of high severity`],
];

export const freshText = overview => {
  const fresh = overview.sources.filter(isFresh).length;
  return `${count(fresh)} of ${plural(overview.sources.length, "source")} fresh`;
};

export const isFresh = source => source.freshness.state === "ok" && source.overdue_since === null;
