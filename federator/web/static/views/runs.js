// All runs, newest first, and the start of one.
import {get, query, readPerson, send} from "../api.js";
import {getElement, make, name} from "../dom.js";
import {ago, exact, state, words} from "../format.js";
import {empty, freshness, more, panel, path, rows, sentences, table, tableRow, UI, unlessAllowed} from "../parts.js";
import {attempt} from "../router.js";
import {chips, choice} from "./filters.js";

const COLUMNS = [["Run", "full"], ["Kind"], ["Of", "long"], ["State"], ["By"], ["Started"], ["Took", "n"]];
const KINDS = ["crawl", "plan", "sync", "apply", "verify", "report", "prune"];
/** @type {[string, string][]} */
const STATES = [["", "all"], ...["running", "ok", "partial", "held", "failed", "interrupted"].map(each => /** @type {[string, string]} */ ([each, each]))];
/** @type {[string, string][]} */
const PERIODS = [["-1h", "the last hour"], ["-1d", "the last day"], ["-7d", "the last week"]];

export const runLink = id => make("a", {class: "run-id", href: path("runs", id)}, name(id, {mono: true}));

export const took = run => (run.finished_at ? exact((Date.parse(run.finished_at) - Date.parse(run.started_at)) / 1000) : "");

const SHOWN = 3;

/* What a run is about, and why it did not succeed. */
function aboutOf(run) {
  const problem = run.problem && sentences(run.subjects.length === 1 ? run.problem.replace(`${run.subjects[0]}: `, "") : run.problem), hidden = run.subjects.length - SHOWN;
  if (!problem && !run.subjects.length) return null;
  return make("div", {}, run.subjects.slice(0, SHOWN).map((subject, at) => [at ? ", " : "", name(subject)]), hidden > 0 ? ` and ${hidden} more` : null,
    problem ? make("small", {class: "lacking short", title: problem, text: problem}) : null);
}

const cellsOf = run => [runLink(run.id), words(run.kind), aboutOf(run), state(run.state), make("bdi", {text: run.actor}), ago(run.started_at), took(run)];

/** The newest runs about a source or a mirror. @returns {Promise<any[]>} */
export const readLatestRuns = async (subject, signal) => (await get(query("/api/v1/runs", {subject, limit: 5}), signal)).runs;

/* The same as a list, each with the reason if it did not succeed. */
export function runsPanel(subject, runs) {
  const all = make("a", {class: "link", href: `${UI}/runs?${new URLSearchParams({subject})}`, text: "All of its runs"});
  return panel("Latest runs", {more: runs.length ? all : null}, runs.length ? rows(runs.map(run => ({state: run.state, time: run.started_at, detail: run.problem && sentences(run.problem.replace(`${subject}: `, "")),
    title: make("span", {}, make("a", {href: path("runs", run.id), text: `${words(run.kind)}: ${words(run.state)}`}), make("span", {class: "q"}, " by ", name(run.actor), run.finished_at ? `, took ${took(run)}` : null))})), "rows log") : empty("No run yet"));
}

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
      const body = {kind: kind.value, ...(subject.value ? {[of]: [subject.value]} : {}), ...(full.checked && !whole.hidden ? {full: true} : {})};
      // A line that says something stays if the view is shown again meanwhile.
      line.replaceChildren("The run is being requested.");
      const queued = await send("POST", "/api/v1/runs", body).catch(error => {
        line.replaceChildren();
        throw error;
      });
      const {followRequest, requestLine} = await import("./requests.js");
      await followRequest(queued, (...states) => line.replaceChildren(...requestLine(...states).filter(Boolean)), signal);
    });
  });
  return [form, line];
}

export async function show({query: given, signal}) {
  const filters = {kind: given.get("kind"), state: given.get("state"), since: given.get("since"), subject: given.get("subject"), limit: 50};
  const [page, {sources}, {mirrors}, person] = await Promise.all([get(query("/api/v1/runs", filters), signal), get("/api/v1/sources", signal), get("/api/v1/mirrors?limit=1000", signal), readPerson()]);
  const list = table(COLUMNS, page.runs.map(cellsOf), "Runs"), body = getElement(list, "tbody");
  const following = more(page.next, async cursor => {
    const next = await get(query("/api/v1/runs", {...filters, cursor}), signal);
    body.append(...next.runs.map(run => tableRow(COLUMNS, cellsOf(run))));
    return next.next;
  });
  const [form, line] = starter(sources.filter(each => each.configured).map(each => each.name), mirrors.map(each => each.name), person, signal);
  const names = [...sources, ...mirrors].map(each => /** @type {[string, string]} */ ([each.name, each.name]));
  const none = filters.kind || filters.state || filters.since || filters.subject ? empty("No run matches", make("a", {href: `${UI}/runs`, text: "Clear the filter"})) : empty("No run yet", "Crawl all sources to start.");
  return {title: "Runs", nodes: [make("div", {class: "title head"}, make("h1", {tabindex: "-1", text: "Runs"}), make("div", {class: "acts"}, form)), line, chips("State", STATES, filters.state, "state"),
    make("div", {class: "filters"}, choice("Kind", KINDS.map(each => [each, words(each)]), filters.kind, "kind"), choice("Of", names, filters.subject, "subject"), choice("Started in", PERIODS, filters.since, "since")),
    make("section", {class: "panel", "aria-label": "Runs"}, page.runs.length ? list : none, following), freshness(page.freshness)]};
}
