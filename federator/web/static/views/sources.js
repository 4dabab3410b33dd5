// All sources with their freshness, and buttons that request crawls.
import {get} from "../api.js";
import {readOverview} from "../attention.js";
import {bar, barKey} from "../charts.js";
import {make} from "../dom.js";
import {ago, count, plural, state, until} from "../format.js";
import {button, crawledAgo, empty, link, needing, panel, sentences, table, UI} from "../parts.js";
import {attempt} from "../router.js";

/* A button that requests a crawl: of all sources, or as the request's further fields say. */
export const crawlButton = (text, request = {}, kind = "") => needing("operator", button(text, () => attempt(async () => {
  const {requestRun} = await import("./requests.js");
  await requestRun("Crawl", {kind: "crawl", ...request});
}), {kind, shape: "run"}));

// States of tables that are not well. A source that was read completely is not shown in green while it has such tables.
/* The tables of a source, in one verification state or in those that are not well. */
export const tablesAddress = (source, state) => `${UI}/search?${new URLSearchParams({q: `source:${source} ${state ? `state:${state}` : "-state:valid -state:declared_only -state:unverified"}`})}`;

const POOR = ["empty", "refers_outside", "denied", "unreachable", "missing", "corrupt", "not_lance"];

/* How many of its tables are not well. @param {any} source */
export const brokenTables = source => POOR.reduce((sum, each) => sum + (source.states[each] ?? 0), 0);

/**
 * The state of a source of the overview: of its crawl, and of its tables.
 * @param {any} source
 * @param {{tag?: boolean}} [how]
 */
export function sourceState(source, {tag = false} = {}) {
  if (source.freshness.state !== "ok") return state(source.freshness.state, {tag});
  if (source.overdue_since) return state("stale", {text: "overdue", tag});
  const poor = brokenTables(source);
  return poor ? state("warn", {text: `fresh, ${count(poor)} not well`, tag}) : state("ok", {text: "fresh", tag});
}

/* The jobs by their names, such as crawl:SOURCE. @returns {Promise<Map<string, any>>} */
export const readJobs = async signal => new Map((await get("/api/v1/jobs?limit=1000", signal)).jobs.map(job => [job.name, job]));

/* When a job is due next: its schedule, if it has no time. */
export const nextRun = (schedule, job) => (job?.paused ? state("paused") : job?.next_at ? until(job.next_at) : make("span", {class: "nw", text: schedule || "by hand"}));

/* What needs attention about a source, if something does. */
export const attentionTo = (overview, source) => overview.attention.find(item => item.kind === "source" && item.subject === source);

/* The state of a source: where its tables are not well, a way to them; what was not read; if it needs attention, for how long. */
export const stateCell = (source, item) => make("div", {}, source.freshness.state === "ok" && !source.overdue_since && brokenTables(source) ? make("a", {href: tablesAddress(source.name)}, sourceState(source)) : sourceState(source),
  source.failed_namespaces ? make("small", {class: "lacking", text: `${count(source.failed_namespaces)} of ${plural(source.namespaces, "namespace")} not read`}) : null, item?.since ? make("small", {class: "lacking"}, "for ", ago(item.since, {suffix: ""})) : null);

/* What the last crawl said; if it did not go well, a way to the runs. */
const noteOf = ({name, freshness: {message, state}}) => (message ? make("div", {}, make("p", {text: sentences(message.replace(`${name}: `, ""))}), state === "ok" ? null : make("p", {}, make("a", {href: `${UI}/runs?${new URLSearchParams({subject: name})}`, text: "Its runs"}))) : null);

const COLUMNS = [["Source"], ["Kind", "impl"], ["State", "full"], ["Crawled"], ["Tables by verification state", "health full"], ["Tables", "n"], ["Next crawl"], ["Note", "long"]];

export async function show({signal}) {
  const overview = await readOverview(signal), {sources} = overview;
  const cells = sources.map(source => [link("t", source.name), source.impl, stateCell(source, attentionTo(overview, source.name)), crawledAgo(source.freshness, source.overdue_since), bar(source.states), count(source.tables),
    nextRun(source.schedule, source.job), noteOf(source)]);
  // Without anything to note, there is no column for it.
  const shown = sources.some(source => source.freshness.message) ? COLUMNS.length : COLUMNS.length - 1;
  const body = sources.length ? panel("All sources", {note: count(sources.length), more: barKey()}, table(COLUMNS.slice(0, shown), cells.map(each => each.slice(0, shown)), "Sources"))
    : empty("No source is configured", "Add one with: federator init");
  return {title: "Sources", nodes: [make("div", {class: "title head"}, make("h1", {tabindex: "-1", text: "Sources"}),
    make("div", {class: "acts"}, crawlButton("Crawl all sources"))), body]};
}
