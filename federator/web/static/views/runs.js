// All runs, newest first.
import {get, query} from "../api.js";
import {getElement, make, name} from "../dom.js";
import {ago, duration, state} from "../format.js";
import {empty, freshness, more, path, table, tableRow} from "../parts.js";
import {crawlButton} from "./sources.js";

const COLUMNS = [["Run"], ["Kind"], ["State"], ["By"], ["Started"], ["Took", "n"]];

export const runLink = id => make("a", {href: path("runs", id)}, name(id, {mono: true}));

export const took = run => (run.finished_at ? duration((Date.parse(run.finished_at) - Date.parse(run.started_at)) / 1000) : "");

const cellsOf = run => [runLink(run.id), run.kind, state(run.state), make("bdi", {text: run.actor}), ago(run.started_at), took(run)];

export async function show({signal}) {
  const page = await get("/api/v1/runs?limit=50", signal);
  const list = table(COLUMNS, page.runs.map(cellsOf), "Runs"), body = getElement(list, "tbody");
  const following = more(page.next, async cursor => {
    const next = await get(query("/api/v1/runs", {limit: 50, cursor}), signal);
    body.append(...next.runs.map(run => tableRow(COLUMNS, cellsOf(run))));
    return next.next;
  });
  return {title: "Runs", nodes: [make("div", {class: "title head"}, make("h1", {tabindex: "-1", text: "Runs"}), make("div", {class: "acts"}, crawlButton("Crawl all sources", {}, "main"))),
    make("section", {class: "panel", "aria-label": "Runs"}, page.runs.length ? list : empty("No run yet", "Crawl all sources to start."), following), freshness(page.freshness)]};
}
