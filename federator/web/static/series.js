// Series of days: growth as a line, crawls as a strip of cells. Both have their numbers as a text alternative.
import {make, makeSvg} from "./dom.js";
import {count, plural} from "./format.js";

const DAYS = 30, DAY = 86_400_000;

/* The last 30 days in UTC, the oldest first, as the API writes them. */
function dates() {
  const today = Math.floor(Date.now() / DAY) * DAY;
  return Array.from({length: DAYS}, (_, at) => new Date(today - (DAYS - 1 - at) * DAY).toISOString().slice(0, 10));
}

/* The number of tables at the end of each day; null before the first crawl. A day without a crawl has the number of the day before. */
export function tablesByDay(days) {
  const known = new Map(days.map(day => [day.date, day.tables]));
  let last = null;
  return dates().map(date => (last = known.get(date) ?? last));
}

/* The sum of several sources, day by day; null where none was known. */
export const sumByDay = series => dates().map((_, at) => {
  const known = series.map(values => values[at]).filter(value => value !== null);
  return known.length ? known.reduce((sum, value) => sum + value, 0) : null;
});

/* A line from the lowest to the highest value. Without two days there is nothing to draw. */
export function growth(values, what) {
  const known = values.map((value, at) => ({value, at})).filter(({value}) => value !== null);
  if (known.length < 2) return make("span", {class: "q small", text: known.length ? "first day" : "not crawled"});
  const all = known.map(({value}) => value), low = Math.min(...all), high = Math.max(...all), first = known[0].at;
  const x = at => (100 * (at - first) / (DAYS - 1 - first)).toFixed(2), y = value => (high === low ? 10 : 18 - 16 * (value - low) / (high - low)).toFixed(2);
  const line = known.map(({value, at}, number) => `${number ? "L" : "M"}${x(at)} ${y(value)}`).join(" ");
  const text = `${what}: ${count(all[0])} ${plural(known.length - 1, "day")} ago, ${count(all[all.length - 1])} now`;
  return makeSvg("svg", {class: "spark", viewBox: "0 0 100 20", preserveAspectRatio: "none", role: "img", "aria-label": text}, makeSvg("title", {text}),
    makeSvg("path", {class: "area", d: `${line} L100 20 L0 20 Z`}), makeSvg("path", {d: line}));
}

const toneOfDay = day => (!day || !day.crawls ? "none" : day.failed ? "bad" : day.partial ? "warn" : "ok");
const SHAPES = {none: [13, 3], bad: [0, 16], warn: [4, 12], ok: [8, 8]};

/* One cell for each of 30 days: not crawled, complete, partial or failed. The worse, the higher. */
export function crawlStrip(days) {
  const known = new Map(days.map(day => [day.date, day])), list = dates().map(date => known.get(date));
  const sums = ["crawls", "partial", "failed"].map(key => days.reduce((sum, day) => sum + day[key], 0));
  const text = `${plural(sums[0], "crawl")} in 30 days, ${count(sums[1])} partial, ${count(sums[2])} failed`;
  return makeSvg("svg", {class: "strip", viewBox: "0 0 120 16", role: "img", "aria-label": text}, makeSvg("title", {text}), list.map((day, at) => {
    const tone = toneOfDay(day), [y, height] = SHAPES[tone];
    return makeSvg("path", {class: `f-${tone === "none" ? "quiet" : tone}`, d: `M${at * 4} ${y}h3v${height}h-3z`});
  }));
}
