// A graph as nested lists, from left to right: cards, and between two of them what leads from one to the other.
import {make} from "../dom.js";

const levelsOf = list => 1 + Math.max(0, ...[...list.querySelectorAll(":scope > li > ul")].map(levelsOf));

/* What leads from one card to the next, on both sides of the line: what it is, and its state. */
export const via = (what, states) => make("div", {class: "via"}, make("div", {}, what), make("div", {}, states));

/**
 * @param {string} title
 * @param {string} label from what to what it leads
 * @param {string} text the graph in words
 * @param {any[]} items its roots
 */
export function flow(title, label, text, items) {
  const list = make("ul", {class: "flow", "aria-label": `${label}: ${text}`}, items);
  list.style.setProperty("--levels", String(levelsOf(list)));
  return make("div", {class: "scroll around-flow", tabindex: "0", role: "group", "aria-label": `${title}, scrolls sideways`}, list);
}
