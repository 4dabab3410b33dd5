// Parts that several views use: panels, tables, lists, states of a view, pages.
import {readPerson} from "./api.js";
import {icon, lastName, make, name, parentId, trail} from "./dom.js";
import {ago, shapeOf, state, toneOf, words} from "./format.js";

export const UI = "/ui";

export const path = (kind, id) => `${UI}/${kind}/${encodeURIComponent(id)}`;

export const link = (kind, id, shown = id, options) => make("a", {href: path(kind, id), ...options}, name(shown));

/** The name of an object, and where it is. @param {string} id @returns {[string, any]} */
export const objectParts = id => [lastName(id), id.includes("$") ? trail(parentId(id)) : null];

/** The last name of a location, and all of it. @param {string} location @returns {[string, any]} */
export const locationParts = location => [location.replace(/\/+$/, "").split("/").at(-1) || location, name(location, {mono: true})];

/* A short name with the whole path below it: a link with the accessible name `full`, or what the view itself is about. */
const twoLines = ([shown, where], full, href) => make("div", {class: "two"}, href ? make("a", {href, title: full, "aria-label": full}, name(shown)) : make("span", {}, name(shown), " (this)"),
  where ? make("small", {class: "lacking"}, where) : null);

export const objectLink = (id, isThis = false) => twoLines(objectParts(id), id, isThis ? null : path("t", id));

export const locationLink = (location, href = path("datasets", location)) => twoLines(locationParts(location), location, href);

/**
 * A section with a heading. `more` stands at the right of the heading.
 * @param {string} title
 * @param {{note?: any, more?: any, id?: string}} [how]
 * @param {...any} children
 */
export function panel(title, {note, more, id} = {}, ...children) {
  const heading = make("header", {}, make("h2", {text: title}), note ? make("span", {class: "q"}, note) : null, more ? make("div", {class: "acts"}, more) : null);
  return make("section", {class: "panel", "aria-label": title, id}, heading, ...children);
}

/**
 * A table. A cell is a text, an element, or null. Below 800 px each row becomes a card.
 * @param {string[][]} columns title and class of each column
 * @param {any[][]} rows cells of each row
 * @param {string} label
 */
export function table(columns, rows, label) {
  const head = make("tr", {}, columns.map(([title, kind]) => make("th", {scope: "col", class: kind, text: title})));
  const body = make("tbody", {}, rows.map(cells => tableRow(columns, cells)));
  return make("div", {class: "scroll", tabindex: "0", role: "group", "aria-label": `${label}, scrolls sideways`},
    make("table", {class: "cards", "aria-label": label}, make("thead", {}, head), body));
}

export function tableRow(columns, cells) {
  return make("tr", {}, cells.map((cell, at) => make("td", {class: columns[at][1], "data-h": at ? columns[at][0] : null},
    cell === null || cell === undefined ? "" : cell.nodeType ? cell : String(cell))));
}

/** @param {any[]} entry */
const isShown = ([, value]) => value !== null && value !== undefined && value !== "";

/* Facts side by side in one strip, or null if there are none. @param {any[][]} entries title and value of each */
export function figures(entries) {
  const known = entries.filter(isShown);
  return known.length ? make("dl", {class: "figures thin"}, known.map(([title, value]) => make("div", {}, make("dt", {text: title}), make("dd", {}, value)))) : null;
}

export function pairs(entries, kind = "pairs") {
  return make("dl", {class: kind}, entries.filter(isShown).flatMap(([title, value]) => [make("dt", {text: title}), make("dd", {}, value.nodeType ? value : String(value))]));
}

/* entries: {icon | sign, title, detail, time, action}. */
export const rows = (entries, kind = "rows") => make("ul", {class: kind}, entries.map(entry => make("li", {},
  entry.sign ?? icon(shapeOf(entry.state), {label: entry.state.replaceAll("_", " "), tone: toneOf(entry.state)}),
  make("div", {class: "what"}, make("span", {}, entry.title), entry.detail ? make("small", {}, entry.detail) : null),
  entry.time ? ago(entry.time, {suffix: ""}) : null, entry.action)));

/**
 * @param {string} text
 * @param {(event: any) => any} onclick
 * @param {{kind?: string, shape?: string, [attribute: string]: any}} [how]
 */
export const button = (text, onclick, {kind = "", shape, ...more} = {}) =>
  make("button", {class: `btn ${kind}`, type: "button", onclick, ...more}, shape ? icon(shape) : null, text);

export function copyButton(text, what) {
  const copy = make("button", {class: "btn copy", type: "button", "aria-label": `Copy the ${what}`, title: `Copy the ${what}`}, icon("copy"));
  copy.addEventListener("click", async () => {
    await navigator.clipboard.writeText(text);
    copy.replaceChildren(icon("ok", {label: "copied"}));
  });
  return copy;
}

/**
 * An empty list: good, by a filter, or on first use; the three have different texts.
 * @param {any} title
 * @param {any} [detail]
 * @param {{state?: string, action?: any}} [how]
 */
export const empty = (title, detail, {state: value = "skipped", action} = {}) => make("div", {class: "empty"},
  icon(shapeOf(value), {tone: toneOf(value)}), make("strong", {}, title), detail ? make("p", {}, detail) : null, action);

export const note = (tone, ...children) => make("div", {class: `note ${tone}`}, icon(tone === "bad" ? "bad" : tone === "ok" ? "ok" : "warn"), make("div", {class: "grow"}, ...children));

/* A button that loads the following page, as long as there is one. `load(cursor)` returns the next cursor. */
export function more(cursor, load) {
  const holder = make("footer", {class: "more"});
  const show = next => {
    holder.hidden = !next;
    holder.replaceChildren(button("Show more", async event => {
      event.target.disabled = true;
      try {
        show(await load(next));
        holder.toggleAttribute("data-extended", true);
      } catch (error) {
        holder.replaceChildren(note("bad", error.message), button("Try again", () => show(next)));
      }
    }));
  };
  show(cursor);
  return holder;
}

/* When a source was crawled; in amber if that should have been better, or earlier. @param {any} fresh @param {any} [overdue] */
export const crawledAgo = (fresh, overdue) => ago(fresh.crawled_at, {stale: fresh.state !== "ok" || Boolean(overdue)});

/* The age of what is known of a source, beside a number of it, if the newest crawl could not read it. */
export const ageOf = fresh => (fresh.state === "failed" && fresh.published_at ? make("small", {class: "tone-warn"}, "as of ", ago(fresh.published_at)) : null);

/* The ages of the sources that a view is based on. Sources that were not read as planned are marked. */
export function freshness(list) {
  if (!list || !list.length) return null;
  const parts = list.flatMap((fresh, at) => [at ? ", " : "", make("bdi", {text: fresh.source}), " ", crawledAgo(fresh), fresh.state === "ok" ? null : " ",
    fresh.state === "ok" ? null : state(fresh.state)]);
  return make("p", {class: "q small fresh"}, "As crawled: ", ...parts);
}

/* A message of the service: its hint is a sentence of its own. @param {string} text */
export const sentences = text => text.replace(/\s*\bhint: (.)/, (_, first) => `. ${first.toUpperCase()}`);

/* What the last crawl said: the sentence names its source itself. */
const told = fresh => (fresh.message ? sentences(fresh.message.replace(`${fresh.source}: `, "")) : null);

/* What is said of a source that was not read as planned. @type {Record<string, string>} */
export const UNREAD = {failed: "could not be read", partial: "was read in part", never: "was never crawled"};

/**
 * The sentence about sources whose last crawl was not complete; null if all were.
 * @param {any[]} list
 * @param {any} [further] what else is known of it
 */
export function staleNote(list, further = null) {
  const stale = (list || []).filter(fresh => fresh.state !== "ok");
  return stale.length ? note(stale.some(fresh => fresh.state === "failed") ? "bad" : "warn", stale.map(fresh => make("p", {}, make("strong", {}, make("bdi", {text: fresh.source})), ` ${UNREAD[fresh.state] ?? words(fresh.state)}: `, told(fresh) || "the last crawl did not read everything", ". Nothing is treated as absent because of that.")), further) : null;
}

/** The roles, each of which may do what those before it may. */
export const ROLES = ["viewer", "operator", "writer", "admin"];

/**
 * Attributes of a button that needs a role: disabled with the reason, or none.
 * @param {{name: string, role: string, scopes: string[]}} person
 * @param {string} role
 * @param {{everything?: boolean}} [how] `everything`: it also needs the scope *
 */
export function unlessAllowed(person, role, {everything = false} = {}) {
  if (ROLES.indexOf(person.role) >= ROLES.indexOf(role) && (!everything || person.scopes.includes("*"))) return {};
  return {disabled: true, title: `Needs the role ${role}${everything ? " and the scope *" : ""}; you have the role ${person.role}`};
}

/**
 * A button that needs a role: disabled with the reason, as soon as it is known who is signed in.
 * @param {string} role
 * @param {HTMLButtonElement} element
 */
export function needing(role, element) {
  readPerson().then(person => Object.assign(element, unlessAllowed(person, role)), () => {});
  return element;
}
