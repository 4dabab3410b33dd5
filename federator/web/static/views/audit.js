// Sealed audit events, newest first.
import {get, query, save} from "../api.js";
import {getElement, make, name} from "../dom.js";
import {ago, count, plural, state, words} from "../format.js";
import {button, empty, more, panel, table, tableRow, UI} from "../parts.js";
import {announce, attempt} from "../router.js";
import {choice, entry} from "./filters.js";
import {runLink} from "./runs.js";

const COLUMNS = [["Number", "n"], ["Time"], ["Kind", "nw"], ["Actor"], ["Subject", "name"], ["Run", "full"], ["Outcome", "full"], ["Detail", "event"]];

const KINDS = ["write", "own_write", "plan", "plan_approved", "plan_rejected", "run_started", "run_finished", "config_changed", "table_verified", "credentials_vended", "source_confirmed",
  "instance_confirmed", "instance_rotated", "attention_snoozed", "snooze_ended", "token_created", "token_revoked", "signed_in", "signed_out", "sign_in_refused", "sessions_revoked", "ledger_rebuilt",
  "history_pruned", "report_made", "audit_checkpoint"];
/** @type {[string, number][]} */
const PERIODS = [["the last hour", 1], ["the last day", 24], ["the last week", 168], ["the last 30 days", 720]];
const HOUR = 3_600_000;

/* What was done, and its state: of a write its action, of a run how it ended. */
const outcome = detail => (detail.action || detail.state ? make("span", {}, detail.action ? make("span", {class: "nw", text: words(detail.action)}) : null, " ", detail.state ? state(detail.state) : null) : null);

const cellsOf = event => [count(event.seq), ago(event.at), words(event.kind), name(event.actor), name(event.subject), event.run_id ? runLink(event.run_id) : null, outcome(event.detail),
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

/* How far the chain is sealed, signed and anchored, and whether its newest events are intact. */
const chainState = chain => make("div", {class: "sub"}, chain.finding ? state("corrupt", {text: chain.finding}) : state("ok", {text: `newest ${plural(chain.checked, "event")} intact`}),
  make("span", {text: `sealed to ${count(chain.sealed)}`}), chain.unsealed ? make("span", {text: `${count(chain.unsealed)} not sealed yet`}) : null,
  make("span", {text: chain.signed ? `signed to ${count(chain.signed)}` : "not signed"}), make("span", {text: chain.anchored ? `anchored to ${count(chain.anchored)}` : "not anchored"}),
  make("span", {}, "all of it: ", make("code", {text: "federator audit verify"})));

export async function show({query: given, signal}) {
  const hours = Number(given.get("hours")), since = hours ? new Date(Date.now() - hours * HOUR).toISOString() : given.get("since");
  const filters = {kind: given.get("kind"), subject: given.get("subject"), run: given.get("run"), since, limit: 100};
  const [page, chain] = await Promise.all([get(query("/api/v1/audit", filters), signal), get("/api/v1/audit/state", signal)]), list = table(COLUMNS, page.events.map(cellsOf), "Audit events"), body = getElement(list, "tbody");
  const following = more(page.next, async cursor => {
    const next = await get(query("/api/v1/audit", {...filters, cursor}), signal);
    body.append(...next.events.map(event => tableRow(COLUMNS, cellsOf(event))));
    return next.next;
  });
  const none = filters.kind || filters.subject || filters.run || since ? empty("No event matches", make("a", {href: `${UI}/audit`, text: "Clear the filter"})) : empty("No sealed event yet");
  return {title: "Audit", nodes: [make("div", {class: "title head"}, make("h1", {tabindex: "-1", text: "Audit"}),
    make("div", {class: "acts"}, ["jsonl", "csv"].map(format => button(`Export ${format.toUpperCase()}`, () => attempt(() => exportEvents(filters, format, signal)), {shape: "save"})))), chainState(chain),
  make("div", {class: "filters"}, choice("Kind", KINDS.map(each => [each, words(each)]), filters.kind, "kind"), choice("Sealed in", PERIODS.map(([text, number]) => [String(number), text]), given.get("hours"), "hours"),
    entry("Subject", filters.subject, "subject"), entry("Run", filters.run, "run")), panel("Sealed events", {}, page.events.length ? list : none, following)]};
}
