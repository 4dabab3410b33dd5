// The overview: what needs attention, how well each source is, what changed lately.
import {attentionRow, isFresh, readOverview} from "../attention.js";
import {find, get} from "../api.js";
import {bar, barKey, crawlStrip, growth, sumByDay, tablesByDay} from "../charts.js";
import {make} from "../dom.js";
import {ago, count, plural, state} from "../format.js";
import {crawledAgo, empty, link, panel, rows, table} from "../parts.js";
import {changeRow} from "./changes.js";
import {crawlButton, nextRun, sourceState} from "./sources.js";

const KINDS = [["plan", "Plans"], ["source", "Sources"], ["tables", "Tables"], ["drift", "Drift"]];
const SOURCES = [["Source"], ["Kind", "drop"], ["State", "full"], ["Crawled"], ["30 days", "drop"], ["Tables by verification state", "health full"], ["Tables", "n"], ["Growth", "growth drop"], ["Not read", "n"], ["Next crawl"]];

function figure(title, value, detail, graph) {
  return make("div", {}, make("dt", {text: title}), make("dd", {}, value, detail ? make("small", {}, detail) : null), graph ? make("dd", {class: "fig"}, graph) : null);
}

function figures(overview, series) {
  const {valid = 0} = overview.states, oldest = overview.sources.map(source => source.freshness.crawled_at).filter(Boolean).sort()[0];
  const open = Object.values(overview.drift).reduce((sum, number) => sum + number, 0), fresh = overview.sources.filter(isFresh).length;
  return make("dl", {class: "figures"}, figure("Tables", count(overview.tables), plural(overview.sources.length, "source"), series.size ? growth(sumByDay([...series.values()].map(tablesByDay)), "Tables") : null),
    figure("Valid tables", overview.tables ? `${(Math.floor(1000 * valid / overview.tables) / 10).toFixed(1)} %` : "none", count(valid), bar(overview.states)),
    figure("Open drift", count(open), overview.drift.high ? make("span", {class: "tone-bad", text: `${count(overview.drift.high)} high`}) : null, open ? bar(overview.drift) : null),
    figure("Oldest crawl", oldest ? ago(oldest) : "never", `${fresh} of ${overview.sources.length} fresh`));
}

const nothing = snoozed => (snoozed ? empty("Nothing else needs attention", "What you snoozed is below. It returns when it changes, or when its time is over.")
  : empty("Nothing needs attention", "Held plans, sources that were not read as planned, broken tables and drift appear here.", {state: "ok"}));

function attention(overview) {
  const items = overview.attention.filter(item => !item.snoozed_until), snoozed = overview.attention.filter(item => item.snoozed_until), body = make("div");
  const show = kind => body.replaceChildren(items.length ? rows(items.filter(item => !kind || item.kind === kind).map(attentionRow)) : nothing(snoozed.length));
  const chips = KINDS.map(([kind, title]) => [kind, title, items.filter(item => item.kind === kind).length]).filter(([, , number]) => number).map(([kind, title, number]) =>
    make("button", {class: "chip", type: "button", "aria-pressed": "false", onclick: event => {
      const chosen = event.currentTarget, pressed = chosen.getAttribute("aria-pressed") !== "true";
      for (const chip of chosen.parentElement.children) chip.setAttribute("aria-pressed", chip === chosen && pressed);
      show(pressed ? kind : null);
    }}, title, make("small", {text: count(number)})));
  show(null);
  return panel("Needs attention", {note: items.length ? count(items.length) : null, more: chips.length > 1 ? make("div", {class: "chips", role: "group", "aria-label": "Kind"}, chips) : null}, body,
    snoozed.length ? make("details", {id: "snoozed"}, make("summary", {class: "pad", text: `${count(snoozed.length)} snoozed`}), rows(snoozed.map(attentionRow))) : null);
}

const cellsOf = series => source => {
  const days = series.get(source.name);
  return [link("t", source.name), source.impl, sourceState(source), crawledAgo(source.freshness, source.overdue_since), days ? crawlStrip(days) : null, bar(source.states), count(source.tables),
    days ? growth(tablesByDay(days), source.name) : null, source.failed_namespaces ? state("partial", {text: count(source.failed_namespaces)}) : "0", nextRun(source.schedule, source.job)];
};

/* All sources. A column for growth is there only when there is a past. */
function sourcesTable(sources, series) {
  const cells = sources.map(cellsOf(series)), at = SOURCES.findIndex(([title]) => title === "Growth"), hasPast = cells.some(each => each[at]);
  const shown = list => (hasPast ? list : list.filter((_, nth) => nth !== at));
  return table(shown(SOURCES), cells.map(shown), "Sources");
}

export async function show({signal}) {
  const [overview, history, changes] = await Promise.all([readOverview(signal), get("/api/v1/overview/history", signal), find("/api/v1/diff?from=-1d&newest=true&limit=6", signal).catch(error => {
    if (error.status === 400 || error.status === 409) return null;
    throw error;
  })]);
  const series = new Map(history.sources.map(each => [each.source, each.days]));
  const recent = changes?.differences ?? [];
  return {title: "Overview", nodes: [make("div", {class: "title head"}, make("h1", {tabindex: "-1", text: "Overview"}), make("p", {class: "q", text: `${plural(overview.tables, "table")} in ${plural(overview.sources.length, "source")}`}),
    make("div", {class: "acts"}, crawlButton("Crawl all sources"))), figures(overview, series),
  make("div", {class: "cols"}, attention(overview), panel("Recent changes", {note: "one day", more: make("a", {class: "link", href: "/ui/changes", text: "All changes"})},
    recent.length ? make("ol", {class: "rows log"}, recent.map(item => changeRow(item))) : empty("No change in the last day"))),
  panel("Sources", {more: barKey()}, overview.sources.length ? sourcesTable(overview.sources, series) : empty("No source is configured", "Add one with: federator init"))]};
}
