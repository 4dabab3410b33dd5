// The overview: what needs attention, how well each source is, what changed lately.
import {attentionRow, readOverview} from "../attention.js";
import {find, get} from "../api.js";
import {bar, barKey, breakdown, crawlStrip, grownBy, growth, sumByDay, tablesByDay} from "../charts.js";
import {make, makeSvg, name} from "../dom.js";
import {ago, count, plural} from "../format.js";
import {crawledAgo, empty, link, panel, rows, table, UI} from "../parts.js";
import {changeRow} from "./changes.js";
import {crawlButton, nextRun, stateCell} from "./sources.js";

const KINDS = [["plan", "Plans"], ["source", "Sources"], ["tables", "Tables"], ["drift", "Drift"]];
const SOURCES = [["Source"], ["Kind", "impl drop"], ["State", "full"], ["Crawled"], ["Crawls, 30 days", "drop"], ["Tables by verification state", "health full"], ["Tables", "n"], ["Tables, 30 days", "growth drop"], ["Next crawl"]];

function figure(title, value, detail, graph) {
  return make("div", {}, make("dt", {text: title}), make("dd", {}, value, detail ? make("small", {}, detail) : null), graph ? make("dd", {class: "fig"}, graph) : null);
}

/* When what is known of a source was read: a crawl that failed read nothing. */
const readAt = fresh => (fresh.state === "failed" ? fresh.published_at : fresh.crawled_at);

function figures(overview, series) {
  const {valid = 0} = overview.states, shared = overview.datasets_with_several_declarations, share = 100 * shared / Math.max(1, overview.datasets), [oldest] = overview.sources.map(source => source.freshness).filter(readAt).sort((a, b) => (readAt(a) < readAt(b) ? -1 : 1));
  const open = Object.values(overview.drift).reduce((sum, number) => sum + number, 0), byDay = sumByDay([...series.values()].map(tablesByDay)), grown = grownBy(byDay);
  return make("dl", {class: "figures"}, figure("Tables", count(overview.tables), grown && `${grown} in 30 days`, growth(byDay, "Tables", {axis: true})),
    figure("Valid tables", overview.tables ? `${(Math.floor(1000 * valid / overview.tables) / 10).toFixed(1)} %` : "none", overview.tables ? `${count(valid)} of ${count(overview.tables)}` : null, [bar(overview.states), breakdown({...overview.states, valid: 0}, state => `${UI}/search?${new URLSearchParams({q: `state:${state}`})}`)]),
    figure("Open drift", count(open), null, open ? [bar(overview.drift), breakdown(overview.drift, severity => `${UI}/drift?severity=${severity}`)] : null),
    figure("Declared more than once", count(shared), shared && `${share.toFixed(0)} % of ${plural(overview.datasets, "dataset")}`,
      shared ? [makeSvg("svg", {class: "seg", "aria-hidden": "true"}, makeSvg("rect", {class: "rest", width: "100%"}), makeSvg("rect", {class: "f-accent", width: `${share.toFixed(1)}%`})),
        make("div", {class: "key"}, make("a", {class: "link", href: `${UI}/datasets?several=true`, text: "See these datasets"}))] : null),
    figure("Oldest crawl", oldest ? ago(readAt(oldest), {stale: oldest.state !== "ok"}) : "never", oldest && name(oldest.source)));
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

/* The line of a source, and by how much it grew; null as for `growth`. */
function grownCell(values, source) {
  const chart = growth(values, source);
  return chart && make("span", {class: "grown"}, chart, make("small", {class: "q", text: grownBy(values)}));
}

const cellsOf = series => source => {
  const days = series.get(source.name);
  return [link("t", source.name), source.impl, stateCell(source), crawledAgo(source.freshness, source.overdue_since), days ? crawlStrip(days) : null, bar(source.states), count(source.tables),
    days ? grownCell(tablesByDay(days), source.name) : null, nextRun(source.schedule, source.job)];
};

/* All sources. A column for growth is there only when there is a past. */
function sourcesTable(sources, series) {
  const cells = sources.map(cellsOf(series)), at = SOURCES.findIndex(([title]) => title === "Tables, 30 days"), hasPast = cells.some(each => each[at]);
  const shown = list => (hasPast ? list : list.filter((_, nth) => nth !== at));
  return table(shown(SOURCES), cells.map(shown), "Sources");
}

/* The numbers of the charts, built when they are unfolded. */
function numbersOfDays(series) {
  const details = make("details", {id: "days"}, make("summary", {class: "pad", text: "Numbers of each day"}));
  details.addEventListener("toggle", async () => {
    if (!details.open || details.children.length > 1) return;
    const {daysTable} = await import("./days.js");
    details.append(daysTable(series));
  });
  return details;
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
  make("div", {class: "cols"}, attention(overview), panel("Recent changes", {note: "last day", more: make("a", {class: "link", href: "/ui/changes", text: "All changes"})},
    recent.length ? make("ol", {class: "rows log"}, recent.map(item => changeRow(item))) : empty("No change in the last day"))),
  panel("Sources", {more: barKey()}, overview.sources.length ? [sourcesTable(overview.sources, series), series.size ? numbersOfDays(series) : null] : empty("No source is configured", "Add one with: federator init"))]};
}
