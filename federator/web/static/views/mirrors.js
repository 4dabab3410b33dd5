// All mirrors: whether each is in sync, and the state of both of its sources.
import {get} from "../api.js";
import {readOverview} from "../attention.js";
import {make, name} from "../dom.js";
import {ago, count, counted, state} from "../format.js";
import {empty, link, path, table} from "../parts.js";
import {catalogGraph} from "./catalogs.js";
import {OPEN, planLink, remaining, total} from "./plans.js";
import {brokenTables, readJobs, nextRun} from "./sources.js";

/* The changes of its newest plan that can still be made, by action. None if there are none. */
function pendingChanges({last_plan: plan}) {
  const left = plan && OPEN.includes(plan.state) ? remaining(plan) : {};
  return Object.keys(left).length ? left : null;
}

/* The state of the newest plan and run: a plan that was applied holds nothing any more. */
export function syncState(mirror) {
  const plan = mirror.last_plan;
  if (mirror.last_run?.state === "running") return state("running");
  if (mirror.paused) return state("paused");
  if (mirror.held.length) return state("held");
  if (pendingChanges(mirror)) return state("pending");
  if (!plan) return state("never");
  if (plan.state === "rejected" && Object.keys(remaining(plan)).length) return state("rejected", {text: "plan rejected"});
  // A difference that the mirror leaves alone is still one.
  const refused = total(plan.refusals);
  return refused ? state("drifted", {text: `${count(refused)} refused`}) : state("in sync");
}

/* Both of its sources by name, as the overview has them. */
export const sourcesByName = overview => new Map(overview.sources.map(source => [source.name, source]));

/**
 * @param {any} mirror
 * @param {Map<string, any>} sources those of the overview, by name
 */
export function healthState(mirror, sources) {
  const poor = mirror.freshness.filter(fresh => fresh.state !== "ok"), ends = [mirror.from, mirror.to].map(name => sources.get(name)).filter(Boolean);
  const run = mirror.last_run?.state;
  if (["failed", "interrupted"].includes(run)) return state(run, {text: `last run ${run}`});
  if (poor.length) return state(poor.some(fresh => fresh.state === "failed") ? "failed" : poor.some(fresh => fresh.state === "partial") ? "partial" : "never",
    {text: poor.map(fresh => `${fresh.source} ${fresh.state}`).join(", ")});
  if (mirror.freshness.length < 2) return state("never", {text: "not crawled"});
  const overdue = ends.filter(source => source.overdue_since).map(source => `${source.name} overdue`);
  const broken = ends.map(source => [source.name, brokenTables(source)]).filter(([, number]) => number).map(([name, number]) => `${name}: ${count(number)} not well`);
  return overdue.length || broken.length ? state(overdue.length ? "stale" : "warn", {text: [...overdue, ...broken].join(", ")}) : state("ok", {text: "healthy"});
}

const COLUMNS = [["Mirror"], ["From, to", "full"], ["Sync", "full"], ["Health", "long part"], ["Tables", "n"], ["Pending", "full"], ["Next run"], ["Last run"]];

function pendingCell(mirror) {
  const left = pendingChanges(mirror);
  return left ? make("div", {}, counted(left), make("div", {}, planLink(mirror.last_plan.digest))) : "nothing";
}

const cellsOf = (sources, jobs) => mirror => [link("mirrors", mirror.name), make("span", {class: "nw"}, link("t", mirror.from), " → ", link("t", mirror.to)), syncState(mirror), healthState(mirror, sources), count(mirror.tables),
  pendingCell(mirror), nextRun(mirror.schedule, jobs.get(`sync:${mirror.name}`)), mirror.last_run ? make("a", {href: path("runs", mirror.last_run.id), class: "nw"}, ago(mirror.last_run.started_at)) : "never"];

export async function show({signal}) {
  const [{mirrors}, overview, jobs] = await Promise.all([get("/api/v1/mirrors", signal), readOverview(signal), readJobs(signal)]), sources = sourcesByName(overview);
  return {title: "Mirrors", nodes: [make("div", {class: "title head"}, make("h1", {tabindex: "-1", text: "Mirrors"})),
    mirrors.length ? make("div", {class: "stack"}, catalogGraph(mirrors, syncState, sources), make("section", {class: "panel", "aria-label": "Mirrors"}, table(COLUMNS, mirrors.map(cellsOf(sources, jobs)), "Mirrors")))
      : empty("No mirror is configured", make("span", {}, "A section ", name("[mirrors.NAME]"), " of the configuration declares one."))]};
}
