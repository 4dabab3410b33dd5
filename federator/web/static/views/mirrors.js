// All mirrors: whether each is in sync, and the state of both of its sources.
import {get} from "../api.js";
import {make, name} from "../dom.js";
import {ago, count, counted, state} from "../format.js";
import {empty, link, path, table} from "../parts.js";
import {catalogGraph} from "./catalogs.js";
import {planLink} from "./plans.js";

const PENDING = ["ready", "approved", "held"];

/* The state of the newest plan and run: a plan that was applied holds nothing any more. */
export function syncState(mirror) {
  const plan = mirror.last_plan, pending = plan && PENDING.includes(plan.state) && Object.keys(plan.changes).length;
  if (mirror.last_run?.state === "running") return state("running");
  if (mirror.paused) return state("paused");
  if (mirror.held.length) return state("held");
  if (pending) return state("pending");
  return plan ? state("in sync") : state("never");
}

export function healthState(mirror) {
  const poor = mirror.freshness.filter(fresh => fresh.state !== "ok");
  const run = mirror.last_run?.state;
  if (["failed", "interrupted"].includes(run)) return state(run, {text: `last run ${run}`});
  if (poor.length) return state(poor.some(fresh => fresh.state === "failed") ? "failed" : poor.some(fresh => fresh.state === "partial") ? "partial" : "never",
    {text: poor.map(fresh => `${fresh.source} ${fresh.state}`).join(", ")});
  return mirror.freshness.length === 2 ? state("ok", {text: "healthy"}) : state("never", {text: "not crawled"});
}

const COLUMNS = [["Mirror"], ["From, to"], ["Sync"], ["Health"], ["Tables", "n"], ["Pending", "long"], ["Schedule"], ["Last run"]];

export const mirrorCells = mirror => [link("mirrors", mirror.name), make("span", {class: "nw"}, link("t", mirror.from), " → ", link("t", mirror.to)), syncState(mirror), healthState(mirror), count(mirror.tables),
  mirror.last_plan && PENDING.includes(mirror.last_plan.state) && Object.keys(mirror.last_plan.changes).length ? make("span", {}, counted(mirror.last_plan.changes), " ", planLink(mirror.last_plan.digest)) : "nothing",
  mirror.paused ? "paused" : mirror.schedule || "by hand", mirror.last_run ? make("a", {href: path("runs", mirror.last_run.id), class: "nw"}, ago(mirror.last_run.started_at)) : "never"];

export async function show({signal}) {
  const {mirrors} = await get("/api/v1/mirrors", signal);
  return {title: "Mirrors", nodes: [make("div", {class: "title head"}, make("h1", {tabindex: "-1", text: "Mirrors"})),
    mirrors.length ? make("div", {class: "stack"}, catalogGraph(mirrors, syncState), make("section", {class: "panel", "aria-label": "Mirrors"}, table(COLUMNS, mirrors.map(mirrorCells), "Mirrors")))
      : empty("No mirror is configured", make("span", {}, "A section ", name("[mirrors.NAME]"), " of the configuration declares one."))]};
}
