// Sealed audit events, newest first.
import {get, query, save} from "../api.js";
import {getElement, make, name} from "../dom.js";
import {ago, count, words} from "../format.js";
import {button, empty, more, panel, table, tableRow} from "../parts.js";
import {announce, attempt} from "../router.js";
import {runLink} from "./runs.js";

const COLUMNS = [["Number", "n"], ["Time"], ["Kind"], ["Actor"], ["Subject", "name"], ["Run"], ["Detail", "long"]];

const cellsOf = event => [count(event.seq), ago(event.at), words(event.kind), name(event.actor), name(event.subject), event.run_id ? runLink(event.run_id) : null,
  make("details", {}, make("summary", {text: "event"}), make("pre", {tabindex: "0", text: JSON.stringify(event, null, 2)}))];

const FIELDS = ["seq", "at", "kind", "actor", "subject", "run_id", "detail", "previous", "digest"];

// A cell that begins like a formula is a text in a spreadsheet, too.
const csvCell = value => `"${String(typeof value === "object" && value ? JSON.stringify(value) : value ?? "").replace(/^[=+\-@\t\r]/, "'$&").replaceAll('"', '""')}"`;

/** @type {Record<string, (events: any[]) => string>} */
const FORMATS = {jsonl: events => events.map(event => `${JSON.stringify(event)}\n`).join(""),
  csv: events => [FIELDS.join(","), ...events.map(event => FIELDS.map(field => csvCell(event[field])).join(","))].map(line => `${line}\r\n`).join("")};

/* Save all events that match the filters, the oldest first. */
async function exportEvents(filters, format, signal) {
  const events = [];
  for (let cursor = ""; cursor !== null;) {
    const page = await get(query("/api/v1/audit", {...filters, limit: 1000, cursor}), signal);
    events.push(...page.events);
    cursor = page.next;
  }
  save(new Blob([FORMATS[format](events.reverse())], {type: format === "csv" ? "text/csv" : "application/jsonl"}), `audit.${format}`);
  announce(`${count(events.length)} events saved. federator audit export adds what is needed to verify them elsewhere.`);
}

export async function show({query: given, signal}) {
  const filters = {kind: given.get("kind"), subject: given.get("subject"), run: given.get("run"), limit: 100};
  const page = await get(query("/api/v1/audit", filters), signal), list = table(COLUMNS, page.events.map(cellsOf), "Audit events"), body = getElement(list, "tbody");
  const following = more(page.next, async cursor => {
    const next = await get(query("/api/v1/audit", {...filters, cursor}), signal);
    body.append(...next.events.map(event => tableRow(COLUMNS, cellsOf(event))));
    return next.next;
  });
  return {title: "Audit", nodes: [make("div", {class: "title head"}, make("h1", {tabindex: "-1", text: "Audit"}),
    make("div", {class: "acts"}, ["jsonl", "csv"].map(format => button(`Export ${format.toUpperCase()}`, () => attempt(() => exportEvents(filters, format, signal)), {shape: "report"})))), panel("Sealed events", {}, page.events.length ? list : empty("No sealed event yet"), following)]};
}
