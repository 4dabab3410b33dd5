// One source: its freshness, the namespaces that were not read completely, its contents.
import {find, get} from "../api.js";
import {readOverview} from "../attention.js";
import {bar, breakdown} from "../charts.js";
import {make, name} from "../dom.js";
import {ago, count, plural, state, until, words} from "../format.js";
import {ageOf, crawledAgo, empty, figures, panel, pairs, path, sentences, staleNote, table} from "../parts.js";
import {childrenPanel, driftBelow} from "./namespace.js";
import {heading} from "./heading.js";
import {readLatestRuns, runLink, runsPanel} from "./runs.js";
import {attentionTo, crawlButton, nextRun, sourceState, tablesAddress} from "./sources.js";

const COLUMNS = [["Namespace", "name"], ["Listed"], ["Described"], ["Reason", "long"]];

/* Since when a source is not read as planned, by which run that was found last, and when it is tried next. */
function failureOf(item, source, job, runs) {
  const run = runs.find(each => ["failed", "partial", "interrupted"].includes(each.state));
  return make("p", {class: "small"}, item?.since ? ["This began ", ago(item.since), ". "] : null, run ? [`Last failure: ${words(run.kind)} `, runLink(run.id), " ", ago(run.finished_at), ". "] : null,
    job?.paused ? "Its job is paused: it is not tried again." : job?.next_at ? ["Tried again ", until(job.next_at), "."] : source.schedule ? "Tried again as scheduled." : "It is tried again when a crawl is requested.");
}

export async function showSource(id, given, signal) {
  const key = encodeURIComponent(id);
  const [source, overview] = await Promise.all([get(`/api/v1/sources/${key}`, signal), readOverview(signal)]), fresh = source.freshness;
  const health = overview.sources.find(each => each.name === id);
  const crawled = fresh.state !== "never";
  const [coverage, children, drift, runs] = await Promise.all([find(`/api/v1/sources/${key}/coverage?short=true`, signal), crawled ? childrenPanel(id, signal, given.get("sort") ?? "") : null, driftBelow(id, signal), readLatestRuns(id, signal)]);
  const carried = source.carried_namespaces;
  const cells = (coverage?.namespaces ?? []).map(entry => [make("a", {href: `${path("t", entry.namespace)}?kind=namespace`}, name(entry.namespace)), state(entry.presence),
    state(entry.detail), sentences(entry.presence_reason || entry.detail_reason)]);
  const incomplete = cells.length ? panel("Namespaces that were not read completely", {id: "coverage", note: coverage?.next ? "the first ones" : null}, table(COLUMNS, cells, "Not read completely")) : null;
  const contents = children?.element ?? panel("Contents", {}, empty("Never crawled", "Crawl the source to see its contents."));
  const acts = source.configured ? make("div", {class: "acts"}, crawlButton("Crawl", {sources: [id]}, "main"), carried ? crawlButton("Crawl in full", {sources: [id], full: true}) : null)
    : make("span", {class: "tag"}, "not configured any more");
  const numbers = figures([["Tables", [count(source.tables), ageOf(fresh)]], ["Namespaces", [count(source.namespaces), ageOf(fresh)]],
    ["Not read", source.failed_namespaces ? plural(source.failed_namespaces, "namespace") : null], ["Revision", count(fresh.revision)], ["Crawled", crawledAgo(fresh, health?.overdue_since)]]);
  return {nodes: [heading("source", id, health ? sourceState(health, {tag: true}) : state(fresh.state, {tag: true}), acts), crawled && fresh.state !== "ok" ? staleNote([fresh], failureOf(attentionTo(overview, id), source, health?.job, runs)) : null, numbers,
    make("div", {class: "cols"}, make("div", {class: "stack"}, incomplete, contents, drift),
      make("div", {class: "stack"}, runsPanel(id, runs), panel("About", {}, pairs([["Kind", source.impl], ["Tables", health ? make("div", {}, bar(health.states), breakdown(health.states, each => tablesAddress(id, each))) : null], ["Note", fresh.state === "ok" ? fresh.message : null], ["Changed", ago(fresh.published_at)], ["Read in full", ago(source.full_at)],
        ["Namespaces", fresh.state === "ok" && coverage && !cells.length && !carried ? state("complete", {text: "all were read"}) : null], ["Carried", carried ? `${count(carried)}: the change feed did not name them` : null], ["Schedule", source.schedule], ["Next crawl", nextRun(source.schedule, health?.job)]]))))]};
}
