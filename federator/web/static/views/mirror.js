// One mirror: its rule, its plans and its job.
import {get, query, send} from "../api.js";
import {make, name} from "../dom.js";
import {ago, count} from "../format.js";
import {button, empty, freshness, link, pairs, panel, staleNote} from "../parts.js";
import {announce, attempt, reload} from "../router.js";
import {healthState, syncState} from "./mirrors.js";
import {planTable} from "./plans.js";
import {runLink} from "./runs.js";

export async function show({argument: id, signal}) {
  const key = encodeURIComponent(id);
  const [mirror, plans] = await Promise.all([get(`/api/v1/mirrors/${key}`, signal), get(query("/api/v1/plans", {mirror: id}), signal)]);
  const start = (kind, text, kindOfButton) => button(text, () => attempt(async () => {
    const {id: request} = await send("POST", "/api/v1/runs", {kind, mirrors: [id]});
    announce(`${text} requested (request ${request}). It starts when the worker is free.`);
  }), {kind: kindOfButton, shape: kind === "plan" ? "plan" : "run"});
  const job = encodeURIComponent(`sync:${id}`), pause = mirror.schedule ? button(mirror.paused ? "Resume" : "Pause", () => attempt(async () => {
    await send("POST", `/api/v1/jobs/${job}/${mirror.paused ? "resume" : "pause"}`);
    await reload();
    announce(mirror.paused ? "Resumption requested" : "Pause requested. A run in progress continues.");
  }), {shape: "held"}) : null;
  const rule = Object.entries(mirror.rule).filter(([field]) => !["name", "origin", "target"].includes(field)).map(([field, value]) =>
    [field, value === null || (Array.isArray(value) && !value.length) ? null : make("code", {text: typeof value === "string" ? value : JSON.stringify(value)})]);
  return {title: `Mirror ${id}`, crumbs: [make("a", {href: "/ui/mirrors", text: "Mirrors"}), name(id)], nodes: [
    make("div", {class: "title"}, make("h1", {tabindex: "-1"}, name(id)), syncState(mirror), healthState(mirror), make("div", {class: "acts"}, start("plan", "Plan"), start("sync", "Sync", "main"), pause)),
    make("div", {class: "sub"}, make("span", {}, link("t", mirror.from), " → ", link("t", mirror.to))), staleNote(mirror.freshness),
    make("div", {class: "cols"}, panel("Plans", {}, plans.plans.length ? planTable(plans.plans, "Plans of the mirror") : empty("No plan yet")),
      make("div", {class: "stack"}, panel("Ledger", {}, pairs([["Tables", count(mirror.tables)], ["Namespaces", count(mirror.namespaces)], ["Schedule", mirror.schedule || "by hand"], ["Paused", mirror.paused ? "yes" : "no"],
        ["Last run", mirror.last_run ? make("span", {}, runLink(mirror.last_run.id), " ", ago(mirror.last_run.started_at)) : null]])), panel("Rule", {}, pairs(rule)))), freshness(mirror.freshness)]};
}
