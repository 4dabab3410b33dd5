// All sources with their freshness, and buttons that request crawls.
import {readOverview} from "../attention.js";
import {bar, barKey} from "../charts.js";
import {make} from "../dom.js";
import {ago, count, state} from "../format.js";
import {button, empty, link, panel, table} from "../parts.js";
import {attempt} from "../router.js";

/* A button that requests a crawl: of all sources, or as the request's further fields say. */
export const crawlButton = (text, request = {}, kind = "") => button(text, () => attempt(async () => {
  const {requestRun} = await import("./requests.js");
  await requestRun("Crawl", {kind: "crawl", ...request});
}), {kind, shape: "run"});

// States of tables that are not well. A source that was read completely is not shown in green while it has such tables.
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

const COLUMNS = [["Source"], ["Kind"], ["State", "full"], ["Crawled"], ["Tables by verification state", "health full"], ["Tables", "n"], ["Not read", "n"], ["Schedule"], ["Note", "long"]];

export async function show({signal}) {
  const {sources} = await readOverview(signal);
  const cells = sources.map(source => [link("t", source.name), source.impl, sourceState(source), ago(source.freshness.crawled_at), bar(source.states), count(source.tables),
    count(source.failed_namespaces), source.schedule ?? "by hand", source.freshness.message]);
  const body = sources.length ? panel("All sources", {note: count(sources.length), more: barKey()}, table(COLUMNS, cells, "Sources"))
    : empty("No source is configured", "Add one with: federator init");
  return {title: "Sources", nodes: [make("div", {class: "title head"}, make("h1", {tabindex: "-1", text: "Sources"}),
    make("div", {class: "acts"}, crawlButton("Crawl all sources"))), body]};
}
