// One stored report: its figures as tables and charts, and its files.
import {find, get} from "../api.js";
import {make, makeSvg, name} from "../dom.js";
import {ago, count, size, words} from "../format.js";
import {empty, panel, table, UI} from "../parts.js";
import {fileButtons, titleOf} from "./reports.js";
import {runLink} from "./runs.js";

// Columns that the other views call otherwise.
const NAMES = {bytes: "size", impl: "kind"};

const heading = column => titleOf(NAMES[column] ?? words(column.replace(/_at$/, "")));

function shown(value, column) {
  if (value === null || value === undefined) return null;
  if (column.endsWith("_at")) return ago(value);
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (column === "bytes") return size(value);
  return typeof value === "number" ? count(value) : name(value);
}

const tiles = section => make("dl", {class: "figures thin"}, section.columns.map((column, at) =>
  make("div", {}, make("dt", {text: heading(column)}), make("dd", {}, shown(section.rows[0]?.[at], column) ?? "–"))));

const isNumber = (section, at) => section.rows.every(row => typeof (row[at] ?? 0) === "number") && !section.columns[at].endsWith("_at");

function list(section) {
  const columns = section.columns.map((column, at) => [heading(column), isNumber(section, at) ? "n" : at ? "full" : "name"]);
  const rows = section.rows.map(row => row.map((value, at) => shown(value, section.columns[at])));
  if (section.shape !== "bars") return table(columns, rows, section.title);
  const largest = Math.max(1, ...section.rows.map(row => row[1] ?? 0));
  // The bar repeats the number beside it.
  const share = row => makeSvg("svg", {class: "share", "aria-hidden": "true"}, makeSvg("rect", {class: "f-accent", height: "100%", width: `${(100 * (row[1] ?? 0) / largest).toFixed(1)}%`}));
  return table([...columns.slice(0, 2), ["Share", "long"], ...columns.slice(2)], rows.map((cells, at) => [...cells.slice(0, 2), share(section.rows[at]), ...cells.slice(2)]), section.title);
}

const WIDTH = 640, HEIGHT = 160;

/* Series over days: rows of day, series and value. Each series has its last value in the key. */
function lines(section) {
  const days = [...new Set(section.rows.map(([day]) => day))].sort(), top = Math.max(1, ...section.rows.map(row => row[2] ?? 0)), series = new Map();
  for (const [day, of, value] of section.rows) series.set(of, [...series.get(of) ?? [], [days.indexOf(day), value ?? 0]]);
  const x = at => (days.length > 1 ? WIDTH * at / (days.length - 1) : WIDTH / 2).toFixed(1), y = value => (HEIGHT - HEIGHT * value / top).toFixed(1);
  const drawn = [...series.values()].map((points, at) => makeSvg("path", {class: `series s${at % 6}`, d: points.map(([day, value], nth) => `${nth ? "L" : "M"}${x(day)} ${y(value)}`).join(" ") + (points.length > 1 ? "" : " h.1")}));
  const key = [...series].map(([of, points], at) => make("span", {}, makeSvg("svg", {class: "i", viewBox: "0 0 16 16", "aria-hidden": "true"}, makeSvg("path", {class: `series s${at % 6}`, d: "M0 8h16"})), name(of), " ", count(points[points.length - 1][1])));
  if (days.length < 2) return make("div", {class: "pad"}, make("p", {class: "q small", text: `One day so far: ${days[0]}`}), make("div", {class: "key"}, key));
  return make("div", {class: "pad"}, makeSvg("svg", {class: "lines", preserveAspectRatio: "none", viewBox: `-2 -4 ${WIDTH + 4} ${HEIGHT + 8}`, role: "img", "aria-label": `${section.title}, from ${days[0]} to ${days[days.length - 1]}; at most ${count(top)}`}, drawn),
    make("p", {class: "q small ends"}, make("span", {text: days[0]}), make("span", {text: `at most ${count(top)}`}), make("span", {text: days[days.length - 1]})), make("div", {class: "key"}, key));
}

function view(section) {
  if (section.shape === "tiles") return tiles(section);
  const hidden = section.total - section.rows.length, shape = section.shape === "lines" ? lines : list;
  return panel(section.title, {note: hidden ? `the first ${count(section.rows.length)} of ${count(section.total)}` : shape === lines ? null : count(section.total)},
    section.rows.length ? shape(section) : empty("Nothing to show", null, {state: "ok"}));
}

export async function show({argument: id, signal}) {
  const key = encodeURIComponent(id), report = await get(`/api/v1/reports/${key}`, signal);
  const hasFigures = report.files.some(file => file.name === "report.json"), figures = hasFigures ? await find(`/api/v1/reports/${key}/report.json`, signal) : null;
  const title = titleOf(report.kind);
  return {title, crumbs: [make("a", {href: `${UI}/reports`, text: "Reports"}), name(title)], nodes: [
    make("div", {class: "title"}, make("h1", {tabindex: "-1"}, title), make("div", {class: "acts files"}, fileButtons(report))),
    make("div", {class: "sub"}, report.name === report.kind ? null : name(report.name), make("span", {}, "data of ", ago(report.made_at)), make("span", {}, "by ", name(report.actor)), make("span", {}, "run ", runLink(report.id)),
      figures ? make("span", {text: `${count(figures.details.rows)} rows of detail`}) : null),
    figures ? make("div", {class: "stack"}, figures.sections.map(view))
      : panel("Figures", {}, empty("No figures to show", hasFigures ? "The file is not on this machine: share the worker's state directory with the API." : "The formats of this report do not include json. Its files can be saved."))]};
}
