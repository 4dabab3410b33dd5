// One mirror: its rule, its plans and its job.
import {get, query, send} from "../api.js";
import {readOverview} from "../attention.js";
import {make, name} from "../dom.js";
import {count, exactDuration, words} from "../format.js";
import {button, copyButton, empty, freshness, link, needing, pairs, panel, staleNote} from "../parts.js";
import {announce, attempt, reload} from "../router.js";
import {healthState, sourcesByName, syncState} from "./mirrors.js";
import {mirrorPlanTable} from "./plans.js";
import {readLatestRuns, runsPanel} from "./runs.js";
import {readJobs, nextRun} from "./sources.js";

/* Whether a value of the rule says anything: not an empty list, and not lists that are all empty. */
const isSet = value => value !== null && value !== "" && (typeof value !== "object" || Object.values(value).some(isSet));

// The keys of a rule that are durations, in seconds.
const DURATIONS = ["min_miss_interval", "max_origin_age", "guard_window"];

const numberOf = (field, value) => (DURATIONS.includes(field) ? exactDuration(value) : field.endsWith("_percent") ? `${value} %` : count(value));

export async function show({argument: id, signal}) {
  const key = encodeURIComponent(id);
  const [mirror, plans, overview, runs, jobs] = await Promise.all([get(`/api/v1/mirrors/${key}`, signal), get(query("/api/v1/plans", {mirror: id}), signal), readOverview(signal), readLatestRuns(id, signal), readJobs(signal)]);
  const start = (kind, text, kindOfButton) => needing("operator", button(text, () => attempt(async () => {
    const {requestRun} = await import("./requests.js");
    await requestRun(text, {kind, mirrors: [id]});
  }), {kind: kindOfButton, shape: kind === "plan" ? "plan" : "run"}));
  const job = encodeURIComponent(`sync:${id}`), pause = mirror.schedule ? needing("operator", button(mirror.paused ? "Resume" : "Pause", () => attempt(async () => {
    await send("POST", `/api/v1/jobs/${job}/${mirror.paused ? "resume" : "pause"}`);
    await reload();
    announce(mirror.paused ? "Resumption requested" : "Pause requested. A run in progress continues.");
  }), {shape: "held"})) : null;
  const rule = Object.entries(mirror.rule).filter(([field, value]) => !["name", "origin", "target"].includes(field) && isSet(value)).map(([field, value]) =>
    [words(field), typeof value === "boolean" ? value ? "yes" : "no" : typeof value === "number" ? numberOf(field, value) : make("code", {text: Array.isArray(value) && value.every(each => typeof each === "string") ? value.join(", ") : typeof value === "object" ? JSON.stringify(value) : value})]);
  return {title: `Mirror ${id}`, crumbs: [make("a", {href: "/ui/mirrors", text: "Mirrors"}), name(id)], nodes: [
    make("div", {class: "title"}, make("h1", {tabindex: "-1"}, name(id)), syncState(mirror), healthState(mirror, sourcesByName(overview)), make("div", {class: "acts"}, start("plan", "Plan"), start("sync", "Sync", "main"), pause)),
    make("div", {class: "sub"}, make("span", {}, link("t", mirror.from), " → ", link("t", mirror.to))), staleNote(mirror.freshness),
    make("div", {class: "cols"}, make("div", {class: "stack"}, panel("Plans", {}, plans.plans.length ? mirrorPlanTable(plans.plans) : empty("No plan yet")), runsPanel(id, runs)),
      make("div", {class: "stack"}, panel("Ledger", {}, pairs([["Tables", count(mirror.tables)], ["Namespaces", count(mirror.namespaces)], ["Schedule", mirror.schedule], ["Next run", nextRun(mirror.schedule, jobs.get(`sync:${id}`))]])),
        panel("Rule", {}, pairs(rule)),
      panel("Configuration", {more: copyButton(mirror.toml, "configuration")}, make("pre", {tabindex: "0", role: "group", "aria-label": "The mirror's section of the configuration"}, make("code", {text: mirror.toml}))))), freshness(mirror.freshness)]};
}
