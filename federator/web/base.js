"use strict";
// What every view uses: asking the API, making elements, saying when and how something is.

const view = document.getElementById("main");
const views = {};
// Counts the views that were asked for: what an earlier one still waits for is not shown in a later one.
let turn = 0;

async function ask(path, options = {}) {
  const mine = turn;
  const answer = await fetch(path, {...options, headers: {accept: "application/json", ...options.headers}});
  const body = await answer.json();
  if (mine !== turn) throw new DOMException("another view was asked for", "AbortError");
  if (!answer.ok) throw new Error(body.hint ? `${body.detail} (${body.hint})` : body.detail || answer.statusText);
  return body;
}

function query(path, values) {
  const given = Object.entries(values).filter(([, value]) => value !== undefined && value !== null && value !== "");
  return given.length ? `${path}?${new URLSearchParams(given)}` : path;
}

/* make("a", {href: "#/", text: "x"}, child, ...): attributes, the text, listeners by on*, then what is inside. */
function make(tag, how = {}, ...inside) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(how)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "text") made.textContent = value;
    else if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...inside.filter(child => child !== null && child !== undefined));
  return made;
}

function say(text, tone = "bad") {
  const status = document.getElementById("status");
  status.textContent = text;
  status.className = tone;
}

/* Runs something that may fail, and tells if it does. */
function loud(work) {
  return work.catch(error => { if (error.name !== "AbortError") say(error.message); });
}

function ago(time) {
  if (!time) return make("span", {class: "quiet", text: "never"});
  const s = Math.max(0, (Date.now() - new Date(time)) / 1000);
  const [n, unit] = s < 90 ? [s, "s"] : s < 5400 ? [s / 60, "min"] : s < 129600 ? [s / 3600, "h"] : [s / 86400, "days"];
  return make("time", {datetime: time, title: time, text: `${Math.round(n)} ${unit} ago`});
}

const GOOD = ["ok", "valid", "complete", "carried", "done", "applied", "approved", "ready"];
const FAIR = ["partial", "held", "running", "empty", "declared_only", "skipped", "interrupted", "medium", "queued", "outdated", "rejected"];

/* The word always stands there; the colour only helps. */
function state(word, how = "") {
  const tone = !word || ["never", "unverified", "low"].includes(word) ? "quiet" : GOOD.includes(word) ? "ok" : FAIR.includes(word) ? "warn" : "bad";
  return make("span", {class: `${tone} ${how}`, text: (word || "").replaceAll("_", " ")});
}

function link(kind, id, text = id) { return make("a", {href: `#/${kind}/${encodeURIComponent(id)}`, text}); }

function table(columns, rows, caption) {
  const head = make("tr", {}, ...columns.map(([title, how]) => make("th", {scope: "col", class: how, text: title})));
  const body = rows.map(cells => make("tr", {}, ...cells.map((cell, at) =>
    make("td", {class: columns[at][1]}, cell === null || cell === undefined ? "" : cell.nodeType ? cell : String(cell)))));
  const made = make("table", {"aria-label": caption}, make("thead", {}, head), make("tbody", {}, ...body));
  return make("div", {class: "scroll"}, made);
}

function pairs(entries) {
  const shown = entries.filter(([, value]) => value !== null && value !== undefined && value !== "");
  return make("dl", {}, ...shown.flatMap(([name, value]) => [make("dt", {text: name}), make("dd", {}, value.nodeType ? value : String(value))]));
}

function section(title, ...inside) {
  return make("section", {"aria-label": title}, make("h3", {text: title}), ...inside);
}

/* A button that fetches the next page, as long as there is one. */
function more(cursor, fetching) {
  if (!cursor) return null;
  const button = make("button", {type: "button", text: "Show more", onclick: () => { button.disabled = true; loud(fetching(cursor, button)); }});
  return button;
}

function freshness(list) {
  if (!list || !list.length) return "";
  const parts = list.flatMap((fresh, at) => [at ? ", " : "", `${fresh.source} `, ago(fresh.crawled_at), fresh.state === "ok" ? "" : state(fresh.state, "note")]);
  return make("p", {class: "quiet"}, "As crawled: ", ...parts);
}
