// All runs, newest first, and the start of one.
import {get, query, readPerson, send} from "../api.js";
import {getElement, make, name} from "../dom.js";
import {ago, duration, state, words} from "../format.js";
import {empty, freshness, more, path, table, tableRow, UI, unlessAllowed} from "../parts.js";
import {attempt} from "../router.js";
import {chips, choice} from "./filters.js";

const COLUMNS = [["Run", "full"], ["Kind"], ["State"], ["By"], ["Started"], ["Took", "n"]];
const KINDS = ["crawl", "plan", "sync", "apply", "verify", "report", "prune"];
/** @type {[string, string][]} */
const STATES = [["", "all"], ...["running", "ok", "partial", "held", "failed", "interrupted"].map(each => /** @type {[string, string]} */ ([each, each]))];
/** @type {[string, string][]} */
const PERIODS = [["-1h", "the last hour"], ["-1d", "the last day"], ["-7d", "the last week"]];

export const runLink = id => make("a", {class: "run-id", href: path("runs", id)}, name(id, {mono: true}));

export const took = run => (run.finished_at ? duration((Date.parse(run.finished_at) - Date.parse(run.started_at)) / 1000) : "");

const cellsOf = run => [runLink(run.id), words(run.kind), state(run.state), make("bdi", {text: run.actor}), ago(run.started_at), took(run)];

/* A form that requests a crawl of sources, or plans or syncs of mirrors, and follows it. */
function starter(sources, mirrors, person, signal) {
  const kind = make("select", {id: "start-kind", "aria-label": "Kind of run"}, ["crawl", "plan", "sync"].map(each => make("option", {value: each, text: each})));
  const subject = make("select", {id: "start-subject", "aria-label": "Of what"}), full = make("input", {type: "checkbox", id: "start-full"});
  const line = make("p", {role: "status", id: "started", "data-kept": true}), whole = make("label", {class: "check"}, full, " in full");
  const fill = () => {
    const isCrawl = kind.value === "crawl";
    subject.replaceChildren(make("option", {value: "", text: isCrawl ? "all sources" : "all mirrors"}), ...(isCrawl ? sources : mirrors).map(each => make("option", {value: each, text: each})));
    whole.hidden = !isCrawl;
  };
  kind.addEventListener("change", fill);
  fill();
  const form = make("form", {class: "filters", "aria-label": "Start a run"}, kind, subject, whole, make("button", {class: "btn main", text: "Start", ...unlessAllowed(person, "operator")}));
  form.addEventListener("submit", event => {
    event.preventDefault();
    attempt(async () => {
      const of = kind.value === "crawl" ? "sources" : "mirrors";
      const queued = await send("POST", "/api/v1/runs", {kind: kind.value, ...(subject.value ? {[of]: [subject.value]} : {}), ...(full.checked && !whole.hidden ? {full: true} : {})});
      const {followRequest, requestLine} = await import("./requests.js");
      await followRequest(queued, (...states) => line.replaceChildren(...requestLine(...states).filter(Boolean)), signal);
    });
  });
  return [form, line];
}

export async function show({query: given, signal}) {
  const filters = {kind: given.get("kind"), state: given.get("state"), since: given.get("since"), limit: 50};
  const [page, {sources}, {mirrors}, person] = await Promise.all([get(query("/api/v1/runs", filters), signal), get("/api/v1/sources", signal), get("/api/v1/mirrors?limit=1000", signal), readPerson()]);
  const list = table(COLUMNS, page.runs.map(cellsOf), "Runs"), body = getElement(list, "tbody");
  const following = more(page.next, async cursor => {
    const next = await get(query("/api/v1/runs", {...filters, cursor}), signal);
    body.append(...next.runs.map(run => tableRow(COLUMNS, cellsOf(run))));
    return next.next;
  });
  const [form, line] = starter(sources.filter(each => each.configured).map(each => each.name), mirrors.map(each => each.name), person, signal);
  const none = filters.kind || filters.state || filters.since ? empty("No run matches", make("a", {href: `${UI}/runs`, text: "Clear the filter"})) : empty("No run yet", "Crawl all sources to start.");
  return {title: "Runs", nodes: [make("div", {class: "title head"}, make("h1", {tabindex: "-1", text: "Runs"}), make("div", {class: "acts"}, form)), line, chips("State", STATES, filters.state, "state"),
    make("div", {class: "filters"}, choice("Kind", KINDS.map(each => [each, words(each)]), filters.kind, "kind"), choice("Started in", PERIODS, filters.since, "since")),
    make("section", {class: "panel", "aria-label": "Runs"}, page.runs.length ? list : none, following), freshness(page.freshness)]};
}
