// Elements, icons and names. Texts from catalogs are set as text, never as HTML.
import {ICONS} from "./icons.js";

const SVG = "http://www.w3.org/2000/svg";

/**
 * @template {Element} T
 * @param {T} node
 * @param {Record<string, any>} options
 * @param {any[]} children
 * @returns {T}
 */
function fill(node, options, children) {
  for (const [key, value] of Object.entries(options)) {
    if (value === undefined || value === null || value === false) continue;
    if (key === "text") node.textContent = value;
    else if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children.flat(Infinity).filter(child => child !== null && child !== undefined && child !== false && child !== ""));
  return node;
}

/**
 * make("a", {href: "/ui/", text: "x"}, child, ...): attributes, the text, listeners by on*, then the children.
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {Record<string, any>} [options]
 * @param {...any} children
 * @returns {HTMLElementTagNameMap[T]}
 */
export const make = (tag, options = {}, ...children) => fill(document.createElement(tag), options, children);

/**
 * @param {string} tag
 * @param {Record<string, any>} [options]
 * @param {...any} children
 */
export const makeSvg = (tag, options = {}, ...children) => fill(document.createElementNS(SVG, tag), options, children);

/**
 * The nearest element around the target of an event that a selector matches.
 * @param {Event} event
 * @param {string} selector
 * @returns {HTMLElement | null}
 */
export const around = (event, selector) => (event.target instanceof Element ? event.target.closest(selector) : null);

/** A press of a pointer, until its click is over, or for 10 s. @type {Promise<any>} */
let press = Promise.resolve();
addEventListener("pointerdown", event => {
  // A press on a scroll bar is none on what is in it.
  if (!around(event, "#main *, #tree *")) return;
  press = new Promise(end => {
    setTimeout(end, 10_000);
    for (const type of ["pointerup", "pointercancel"]) addEventListener(type, () => setTimeout(end), {once: true});
  });
}, true);

/** Wait for the end of a press before something is replaced: the click of what is gone by then is lost. */
export const afterPress = () => press;

/**
 * The element of the document with an id. It is a part of the page, or was drawn before.
 * @param {string} id
 * @returns {HTMLElement}
 */
export const byId = id => getElement(document, `#${id}`);

/**
 * The element that a selector matches; there must be one.
 * @param {ParentNode} within
 * @param {string} selector
 * @returns {HTMLElement}
 */
export function getElement(within, selector) {
  const found = within.querySelector(selector);
  if (!(found instanceof HTMLElement)) throw new Error(`there is no element ${selector}`);
  return found;
}

/**
 * An icon; without a label it is decoration, and a word must stand beside it.
 * @param {string} shape
 * @param {{label?: string, tone?: string}} [how]
 */
export function icon(shape, {label, tone} = {}) {
  const described = label ? {role: "img", "aria-label": label} : {"aria-hidden": "true"};
  return makeSvg("svg", {class: `i${tone ? ` tone-${tone}` : ""}`, viewBox: "0 0 16 16", ...described}, makeSvg("path", {d: ICONS[shape]}));
}

// Control, zero-width and direction characters; and Cyrillic or Greek letters that look like Latin ones.
const HIDDEN = "[\\u0000-\\u001f\\u007f-\\u009f\\u00ad\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f\\ufeff]";
const ALIKE = "[\\u0405\\u0406\\u0408\\u0410\\u0412\\u0415\\u041a\\u041c-\\u041e\\u0420-\\u0423\\u0425\\u0430\\u0435\\u043e\\u0440\\u0441\\u0443\\u0445\\u0455\\u0456\\u0458\\u04bb\\u0501\\u051b\\u051d" +
  "\\u0391\\u0392\\u0395-\\u0397\\u0399\\u039a\\u039c\\u039d\\u039f\\u03a1\\u03a4\\u03a5\\u03a7\\u03bd\\u03bf\\u03c1]";
const FOREIGN = "[\\p{sc=Cyrl}\\p{sc=Grek}]";
// What is written out: hidden characters, and letters that look Latin beside a Latin one, or as a whole word.
const UNSEEN = new RegExp(`${HIDDEN}|(?<=[A-Za-z])${ALIKE}+(?!${FOREIGN})|(?<!${FOREIGN})${ALIKE}+(?=[A-Za-z])|(?<!${FOREIGN})${ALIKE}{3,}(?!${FOREIGN})`, "gu");
const spelled = signs => signs.replace(/./gsu, sign => `\\u${sign.charCodeAt(0).toString(16).padStart(4, "0")}`);
const TAIL = 14, LONG = 28;

function visible(text) {
  const parts = [];
  let from = 0;
  for (const match of text.matchAll(UNSEEN)) {
    if (match.index > from) parts.push(text.slice(from, match.index));
    parts.push(make("span", {class: "unseen", text: spelled(match[0])}));
    from = match.index + match[0].length;
  }
  return from ? [...parts, text.slice(from)] : [text];
}

/** @typedef {[number, number][]} Ranges start and end of matches, in characters: whole code points, as the API counts */

/* The characters from..to of a text, with the ranges of a match as <mark>. */
/** @param {string[]} signs @param {Ranges} ranges @param {number} [from] @param {number} [to] */
function marked(signs, ranges, from = 0, to = signs.length) {
  const parts = [];
  let at = from;
  for (const [start, end] of ranges) {
    const first = Math.max(start, at), last = Math.min(end, to);
    if (first >= last) continue;
    parts.push(...visible(signs.slice(at, first).join("")), make("mark", {}, visible(signs.slice(first, last).join(""))));
    at = last;
  }
  return [...parts, ...visible(signs.slice(at, to).join(""))];
}

/**
 * A text from a catalog with its matches.
 * @param {string} text
 * @param {Ranges} ranges
 */
export const highlight = (text, ranges) => make("bdi", {}, marked(Array.from(text), ranges));

/**
 * A name from a catalog. One that does not fit loses its middle: the start and the last characters stay.
 * @param {string} text
 * @param {{mono?: boolean, ranges?: Ranges, long?: number}} [how] `long`: names with more characters are cut; others may take two lines
 */
export function name(text, {mono = false, ranges = [], long = LONG} = {}) {
  const full = String(text ?? ""), kind = `mid${mono ? " mono" : ""}`, signs = Array.from(full), cut = signs.length - Math.min(TAIL, signs.length >> 1);
  if (full.length <= long) return make("bdi", {class: kind}, marked(signs, ranges));
  return make("bdi", {class: kind, title: full}, make("span", {class: "only-listeners"}, marked(signs, ranges)),
    make("span", {class: "start", "aria-hidden": "true"}, marked(signs, ranges, 0, cut)),
    make("span", {class: "end", "aria-hidden": "true"}, marked(signs, ranges, cut)));
}

export const splitId = id => id.split("$").map(part => part.replaceAll("%24", "$").replaceAll("%25", "%"));

/* The id without its last name, and "" for a source. */
export const parentId = id => (id.includes("$") ? id.slice(0, id.lastIndexOf("$")) : "");

export const lastName = id => splitId(id).at(-1);

/**
 * Where an object is: its names with arrows between them. `ranges` has the matches by the id of a name.
 * @param {string} id
 * @param {Record<string, Ranges>} [ranges]
 */
export const trail = (id, ranges = {}) => make("bdi", {class: "trail"}, id.split("$").map((_, level, keys) => {
  const here = keys.slice(0, level + 1).join("$"), shown = splitId(keys[level])[0].replace(UNSEEN, signs => "\ufffd".repeat(signs.length));
  return [level ? " › " : "", marked(Array.from(shown), ranges[here] ?? [])];
}));
