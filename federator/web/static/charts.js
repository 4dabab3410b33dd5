// Small charts: bars of table states, the meter of a guard, growth as a line, crawls as a strip. Each has its numbers as a text alternative.
import {around, make, makeSvg} from "./dom.js";
import {count, day, plural, words} from "./format.js";

// In this order, and with these fills. Only `valid` is green.
const ORDER = [["valid", "ok"], ["declared_only", "info"], ["empty", "warn"], ["refers_outside", "warn"], ["denied", "warn"], ["unreachable", "bad"], ["missing", "bad"], ["corrupt", "bad"], ["not_lance", "bad"], ["unverified", "quiet"],
  ["high", "bad"], ["medium", "warn"], ["low", "quiet"]];

export const KEY = [["ok", "valid"], ["info", "declared only"], ["warn", "empty, denied or refers outside"], ["bad", "unreachable, missing, corrupt or not Lance"], ["quiet", "unverified"]];

export const barKey = () => make("div", {class: "key"}, KEY.map(([tone, text]) => make("span", {}, make("i", {class: `b-${tone}`}), text)));

// What charts say of the point under the pointer: a function of its share of the width. One element shows it for all of them.
const tips = new WeakMap(), tip = make("div", {class: "tip-text", "aria-hidden": "true", hidden: true});

function tipped(chart, textAt) {
  tips.set(chart, textAt);
  return chart;
}

function showTip(event) {
  const chart = around(event, "svg[role=img]"), textAt = chart && tips.get(chart);
  tip.hidden = !textAt;
  if (!textAt) return;
  const box = chart.getBoundingClientRect();
  tip.textContent = textAt(Math.min(1, Math.max(0, (event.clientX - box.left) / box.width)));
  if (!tip.isConnected) document.body.append(tip);
  tip.style.left = `${Math.max(4, Math.min(event.clientX - tip.offsetWidth / 2, innerWidth - tip.offsetWidth - 4))}px`;
  tip.style.top = `${box.top > 48 ? box.top - tip.offsetHeight - 6 : box.bottom + 6}px`;
}
document.addEventListener("pointermove", showTip, {passive: true});
document.addEventListener("pointerdown", showTip, {passive: true});

const occurring = counts => ORDER.filter(([state]) => counts[state]);

const counted = (counts, known) => known.map(([state]) => `${count(counts[state])} ${words(state)}`).join(", ");

export function bar(counts) {
  const known = occurring(counts), total = known.reduce((sum, [state]) => sum + counts[state], 0);
  if (!total) return make("span", {class: "q", text: "none"});
  // A state that occurs is at least 1.5 % wide, so that one broken table among a million can be seen.
  const widths = known.map(([state]) => Math.max(1.5, 100 * counts[state] / total)), sum = widths.reduce((a, b) => a + b, 0);
  let x = 0;
  const parts = known.map(([state, tone], at) => {
    const width = 100 * widths[at] / sum, part = makeSvg("rect", {class: `f-${tone}`, x: `${x.toFixed(2)}%`, width: `${width.toFixed(2)}%`});
    x += width;
    return part;
  });
  const text = counted(counts, known);
  return tipped(makeSvg("svg", {class: "seg", role: "img", "aria-label": text}, parts), () => text);
}

/**
 * The numbers of a bar, each with its fill, and a link to what it counts.
 * @param {Record<string, number>} counts
 * @param {(state: string) => string} href
 */
export const breakdown = (counts, href) => make("div", {class: "key"}, occurring(counts).map(([state, tone]) => {
  const text = `${count(counts[state])} ${words(state)}`;
  return make("span", {}, make("i", {class: `b-${tone}`}), make("a", {class: "link", href: href(state), text}));
}));

/* What a guard measured: a share of a whole, and its limit as a line. `passed`: it does not hold the plan, also beyond its limit. */
export function meter(part, whole, limit, {setting = "", passed = false} = {}) {
  const share = whole ? 100 * part / whole : 100, text = `${count(part)} of ${count(whole)}, ${share.toFixed(0)} %; the limit is ${limit} %${setting && ` (${setting})`}${passed && share > limit ? ", for plans with removals" : ""}`;
  return make("div", {}, makeSvg("svg", {class: "meter", role: "img", "aria-label": text}, makeSvg("rect", {class: "rest", x: "0", y: "10", width: "100%", height: "8"}),
    makeSvg("rect", {class: share <= limit ? "f-ok" : passed ? "f-quiet" : "f-bad", x: "0", y: "10", width: `${Math.min(100, share).toFixed(2)}%`, height: "8"}),
    makeSvg("line", {class: "limit", x1: `${limit}%`, x2: `${limit}%`, y1: "6", y2: "22"})), make("p", {class: "small q", "aria-hidden": "true", text}));
}

const DAYS = 30, DAY = 86_400_000;

/* The last 30 days in UTC, the oldest first, as the API writes them. */
export function dates() {
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

/* The known values of 30 days with their positions; null without two of them, since there is nothing to draw. */
function knownValues(values) {
  const known = values.map((value, at) => ({value, at})).filter(({value}) => value !== null);
  return known.length < 2 ? null : known;
}

const signed = number => (number > 0 ? `+${count(number)}` : number < 0 ? `−${count(-number)}` : "±0");

/* By how much the number of tables grew in the days that are known; null as for `growth`. */
export function grownBy(values) {
  const known = knownValues(values);
  return known && signed(known[known.length - 1].value - known[0].value);
}

/* A line from the lowest to the highest value. `axis`: with the first day and the range of values below it. */
export function growth(values, what, {axis = false} = {}) {
  const known = knownValues(values), days = dates();
  if (!known) return null;
  const all = known.map(({value}) => value), low = Math.min(...all), high = Math.max(...all), first = known[0].at;
  const x = at => (100 * (at - first) / (DAYS - 1 - first)).toFixed(2), y = value => (high === low ? 10 : 18 - 16 * (value - low) / (high - low)).toFixed(2);
  const line = known.map(({value, at}, number) => `${number ? "L" : "M"}${x(at)} ${y(value)}`).join(" ");
  const text = `${what}: ${count(all[0])} ${plural(known.length - 1, "day")} ago, ${count(all[all.length - 1])} now`;
  const chart = tipped(makeSvg("svg", {class: "spark", viewBox: "0 0 100 20", preserveAspectRatio: "none", role: "img", "aria-label": text},
    makeSvg("path", {class: "area", d: `${line} L100 20 L0 20 Z`}), makeSvg("path", {d: line})), share => {
    const at = Math.round(first + share * (DAYS - 1 - first));
    return `${day(days[at])}: ${plural(values[at], "table")}`;
  });
  return axis ? [chart, make("div", {class: "ends", "aria-hidden": "true"}, make("span", {text: `${day(days[first])}: ${count(all[0])}`}), low === high ? null : make("span", {text: `${count(low)} to ${count(high)}`}), make("span", {text: "now"}))] : chart;
}

const toneOfDay = day => (!day || !day.crawls ? "none" : day.failed ? "bad" : day.partial ? "warn" : "ok");

const crawlsOf = day => (day ? `${plural(day.crawls, "crawl")}${[["partial", day.partial], ["failed", day.failed]].filter(([, number]) => number).map(([word, number]) => `, ${count(number)} ${word}`).join("")}` : "no crawl");
const SHAPES = {none: [13, 3], bad: [0, 16], warn: [4, 12], ok: [8, 8]};

/* One cell for each of 30 days: not crawled, complete, partial or failed. The worse, the higher. */
export function crawlStrip(days) {
  const known = new Map(days.map(each => [each.date, each])), all = dates(), list = all.map(date => known.get(date));
  const sums = ["crawls", "partial", "failed"].map(key => days.reduce((sum, each) => sum + each[key], 0));
  const text = `${plural(sums[0], "crawl")} in 30 days, ${count(sums[1])} partial, ${count(sums[2])} failed`;
  return tipped(makeSvg("svg", {class: "strip", viewBox: "0 0 120 16", role: "img", "aria-label": text}, list.map((each, at) => {
    const tone = toneOfDay(each), [y, height] = SHAPES[tone];
    return makeSvg("path", {class: `f-${tone === "none" ? "quiet" : tone}`, d: `M${at * 4} ${y}h3v${height}h-3z`});
  })), share => {
    const at = Math.min(DAYS - 1, Math.floor(share * DAYS));
    return `${day(all[at])}: ${crawlsOf(list[at])}`;
  });
}
