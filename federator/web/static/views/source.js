// One source: its freshness, the namespaces that were not read completely, its contents.
import {find, get} from "../api.js";
import {readOverview} from "../attention.js";
import {bar} from "../charts.js";
import {make, name} from "../dom.js";
import {ago, count, state} from "../format.js";
import {empty, panel, pairs, path, sentences, staleNote, table} from "../parts.js";
import {childrenPanel} from "./namespace.js";
import {heading} from "./heading.js";
import {latestRuns} from "./runs.js";
import {crawlButton, readJobs, scheduleOf, sourceState} from "./sources.js";

const COLUMNS = [["Namespace", "name"], ["Listed"], ["Described"], ["Reason", "long"]];

export async function showSource(id, given, signal) {
  const key = encodeURIComponent(id);
  const [source, overview] = await Promise.all([get(`/api/v1/sources/${key}`, signal), readOverview(signal)]), fresh = source.freshness;
  const health = overview.sources.find(each => each.name === id);
  const crawled = fresh.state !== "never";
  const [coverage, children, runs, jobs] = await Promise.all([find(`/api/v1/sources/${key}/coverage?short=true`, signal), crawled ? childrenPanel(id, signal, given.get("sort") ?? "") : null, latestRuns(id, signal), readJobs(signal)]);
  const carried = source.carried_namespaces;
  const cells = (coverage?.namespaces ?? []).map(entry => [make("a", {href: `${path("t", entry.namespace)}?kind=namespace`}, name(entry.namespace)), state(entry.presence),
    state(entry.detail), sentences(entry.presence_reason || entry.detail_reason)]);
  const good = carried ? "The last crawl did not read again what it knew." : "The last crawl read all of them.";
  const incomplete = panel("Namespaces that were not read completely", {id: "coverage", note: coverage?.next ? "the first ones" : null},
    cells.length ? table(COLUMNS, cells, "Not read completely") : crawled ? empty("None", good, {state: "complete"}) : empty("Never crawled", "Crawl the source to see its contents."));
  const acts = source.configured ? make("div", {class: "acts"}, crawlButton("Crawl", {sources: [id]}, "main"), carried ? crawlButton("Crawl in full", {sources: [id], full: true}) : null)
    : make("span", {class: "tag"}, "not configured any more");
  const figures = make("dl", {class: "figures thin"}, ...[["Tables", count(source.tables)], ["Namespaces", count(source.namespaces)],
    ["Not read", count(source.failed_namespaces)], ["Carried", count(carried)], ["Revision", count(fresh.revision)], ["Crawled", ago(fresh.crawled_at)]].map(([title, value]) =>
    make("div", {}, make("dt", {text: title}), make("dd", {}, value))));
  return {nodes: [heading("source", id, health ? sourceState(health, {tag: true}) : state(fresh.state, {tag: true}), acts), crawled ? staleNote([fresh]) : null, figures,
    make("div", {class: "cols"}, make("div", {class: "stack"}, children?.element, incomplete),
      make("div", {class: "stack"}, runs, panel("About", {}, pairs([["Kind", source.impl], ["Tables", health ? bar(health.states) : null], ["Note", fresh.state === "ok" ? fresh.message : null], ["Changed", ago(fresh.published_at)], ["Read in full", ago(source.full_at)],
        ["Carried", carried ? `${count(carried)}: the change feed did not name them` : null], ["Schedule", scheduleOf(source.schedule, jobs.get(`crawl:${id}`))]]))))]};
}
