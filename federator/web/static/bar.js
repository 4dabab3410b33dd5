// Bars of table states, with the numbers as their text alternative.
import {make, makeSvg} from "./dom.js";
import {count, words} from "./format.js";

// In this order, and with these fills. Only `valid` is green.
const ORDER = [["valid", "ok"], ["declared_only", "info"], ["empty", "warn"], ["refers_outside", "warn"], ["denied", "warn"], ["unreachable", "warn"], ["missing", "bad"], ["corrupt", "bad"], ["not_lance", "bad"], ["unverified", "quiet"],
  ["high", "bad"], ["medium", "warn"], ["low", "quiet"]];

export const KEY = [["ok", "valid"], ["info", "declared only"], ["warn", "empty, denied, unreachable or refers outside"], ["bad", "missing, corrupt or not Lance"], ["quiet", "unverified"]];

export const barKey = () => make("div", {class: "key"}, KEY.map(([tone, text]) => make("span", {}, make("i", {class: `b-${tone}`}), text)));

export function bar(counts) {
  const known = ORDER.filter(([state]) => counts[state]), total = known.reduce((sum, [state]) => sum + counts[state], 0);
  if (!total) return make("span", {class: "q", text: "none"});
  // A state that occurs is at least 1.5 % wide, so that one broken table among a million can be seen.
  const widths = known.map(([state]) => Math.max(1.5, 100 * counts[state] / total)), sum = widths.reduce((a, b) => a + b, 0);
  let x = 0;
  const parts = known.map(([state, tone], at) => {
    const width = 100 * widths[at] / sum, part = makeSvg("rect", {class: `f-${tone}`, x: `${x.toFixed(2)}%`, width: `${width.toFixed(2)}%`});
    x += width;
    return part;
  });
  return makeSvg("svg", {class: "seg", role: "img", "aria-label": known.map(([state]) => `${count(counts[state])} ${words(state)}`).join(", ")}, parts);
}

/* What a guard measured: a share of a whole, and its limit as a line. */
export function meter(part, whole, limit) {
  const share = whole ? 100 * part / whole : 100, text = `${count(part)} of ${count(whole)}, ${share.toFixed(0)} %; the limit is ${limit} %`;
  return make("div", {}, makeSvg("svg", {class: "meter", role: "img", "aria-label": text}, makeSvg("rect", {class: "rest", x: "0", y: "10", width: "100%", height: "8"}),
    makeSvg("rect", {class: share > limit ? "f-bad" : "f-ok", x: "0", y: "10", width: `${Math.min(100, share).toFixed(2)}%`, height: "8"}),
    makeSvg("line", {class: "limit", x1: `${limit}%`, x2: `${limit}%`, y1: "6", y2: "22"})), make("p", {class: "small q", "aria-hidden": "true", text}));
}
