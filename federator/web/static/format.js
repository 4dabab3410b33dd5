// Times, numbers and states as people read them.
import {icon, make} from "./dom.js";

/** @type {[number, number, string][]} */
const UNITS = [[90, 1, "s"], [5400, 60, "min"], [129600, 3600, "h"], [Infinity, 86400, "d"]];

export function duration(seconds) {
  const [, size, unit] = UNITS.find(([limit]) => Math.abs(seconds) < limit) ?? UNITS[UNITS.length - 1];
  return `${Math.round(seconds / size)} ${unit}`;
}

/* The duration of what took a while; of less than 10 s with its tenths. */
export const exact = seconds => (seconds < 10 ? `${seconds.toFixed(1)} s` : duration(seconds));

/* A configured duration, in the largest unit that it is a whole number of. */
export function exactDuration(seconds) {
  const [size, unit] = [[86400, "d"], [3600, "h"], [60, "min"]].find(([size]) => seconds && seconds % Number(size) === 0) ?? [1, "s"];
  return `${count(seconds / Number(size))} ${unit}`;
}

const age = time => duration(Math.max(0, (Date.now() - Date.parse(time)) / 1000));

/* A time as its age; the exact time is in the title. `stale`: what is that old should be newer. */
export function ago(time, {suffix = " ago", stale = false} = {}) {
  if (!time) return make("span", {class: "q", text: "never"});
  return make("time", {datetime: time, title: time, "data-suffix": suffix, class: stale && "tone-warn", text: age(time) + suffix});
}

const untilText = time => {
  const seconds = (Date.parse(time) - Date.now()) / 1000;
  return seconds > 0 ? `in ${duration(seconds)}` : "due now";
};

/* How long it is until a time; the exact time is in the title. */
export const until = time => make("time", {datetime: time, title: time, "data-until": true, text: untilText(time)});

const READ_ALOUD = "[role=alert], [role=status], [aria-live]";

/* Let the ages grow that are shown, except in what would be read aloud again, and in selected text. */
export const startAges = () => setInterval(() => {
  for (const shown of /** @type {NodeListOf<HTMLTimeElement>} */ (document.querySelectorAll("time[data-suffix], time[data-until]"))) {
    const text = shown.dataset.suffix === undefined ? untilText(shown.dateTime) : age(shown.dateTime) + shown.dataset.suffix;
    if (text !== shown.textContent && !shown.closest(READ_ALOUD) && !getSelection()?.containsNode(shown, true)) shown.textContent = text;
  }
}, 10_000);

/* A time in the zone of the browser: the hour of today, else the day, too. */
export function clock(time) {
  const date = new Date(time), isToday = date.toDateString() === new Date().toDateString();
  return date.toLocaleString("en-GB", {...(isToday ? {} : {day: "numeric", month: "short"}), hour: "2-digit", minute: "2-digit"});
}

/* A date of the API, which is a day in UTC, as 24 Nov. */
export const day = date => new Date(date).toLocaleDateString("en-GB", {day: "numeric", month: "short", timeZone: "UTC"});

export const count = number => (number ?? 0).toLocaleString("en");

export const plural = (number, one, many = `${one}s`) => `${count(number)} ${number === 1 ? one : many}`;

// The API counts the tables of a namespace up to this number.
const MOST = 10_000;

/* A number of tables, which may be more than the API counts. */
export const upTo = number => (number > MOST ? `${count(MOST)}+` : count(number));

export const tablesText = number => (number > MOST ? `more than ${count(MOST)} tables` : plural(number, "table"));

export function size(bytes) {
  if (bytes === null || bytes === undefined) return null;
  const power = Math.min(5, Math.floor(Math.log10(Math.max(1, bytes)) / 3));
  return `${(bytes / 1000 ** power).toFixed(power && bytes / 1000 ** power < 100 ? 1 : 0)} ${["B", "kB", "MB", "GB", "TB", "PB"][power]}`;
}

// Tone and icon of each state. A state that is not in the list is a warning: nothing unknown is shown as well.
const STATES = {
  ok: "ok ok", valid: "ok ok", complete: "ok ok", done: "ok ok", applied: "ok ok", approved: "ok ok", sent: "ok ok", "in sync": "ok ok",
  carried: "quiet clock", never: "quiet quiet", unverified: "quiet quiet", skipped: "quiet quiet", outdated: "quiet clock",
  rejected: "quiet stop", paused: "quiet held", low: "quiet drift", queued: "quiet clock", ready: "run plan", running: "run going",
  intent: "run going", declared_only: "info declared", partial: "warn warn", held: "warn held", empty: "warn declared", denied: "warn denied", refers_outside: "warn denied",
  stale: "warn stale", interrupted: "warn stop", cancelled: "warn stop", medium: "warn drift", pending: "warn plan", drifted: "warn drift",
  failed: "bad bad", corrupt: "bad bad", missing: "bad missing", not_lance: "bad bad", unreachable: "bad gone", high: "bad drift", dead: "bad bell",
};

export const toneOf = state => (STATES[state] || "warn warn").split(" ")[0];

export const shapeOf = state => (STATES[state] || "warn warn").split(" ")[1];

export const words = text => (text || "").replaceAll("_", " ");

/**
 * A state: its icon, its word, its colour, in that order of importance.
 * @param {string} value
 * @param {{text?: string, tag?: boolean}} [how]
 */
export const state = (value, {text, tag = false} = {}) =>
  make("span", {class: `${tag ? "tag" : "st"} ${toneOf(value)}`}, icon(shapeOf(value)), text ?? words(value));

export const counted = counts => Object.entries(counts).map(([key, number]) => `${words(key)}: ${count(number)}`).join(", ") || "none";
