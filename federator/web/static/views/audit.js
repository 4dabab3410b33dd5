// Sealed audit events, newest first.
import {get, query} from "../api.js";
import {getElement, make, name} from "../dom.js";
import {ago, count, words} from "../format.js";
import {empty, more, panel, table, tableRow} from "../parts.js";
import {runLink} from "./runs.js";

const COLUMNS = [["Number", "n"], ["Time"], ["Kind"], ["Actor"], ["Subject", "name"], ["Run"], ["Detail", "long"]];

const cellsOf = event => [count(event.seq), ago(event.at), words(event.kind), name(event.actor), name(event.subject), event.run_id ? runLink(event.run_id) : null,
  make("details", {}, make("summary", {text: "event"}), make("pre", {tabindex: "0", text: JSON.stringify(event, null, 2)}))];

export async function show({query: given, signal}) {
  const filters = {kind: given.get("kind"), subject: given.get("subject"), run: given.get("run"), limit: 100};
  const page = await get(query("/api/v1/audit", filters), signal), list = table(COLUMNS, page.events.map(cellsOf), "Audit events"), body = getElement(list, "tbody");
  const following = more(page.next, async cursor => {
    const next = await get(query("/api/v1/audit", {...filters, cursor}), signal);
    body.append(...next.events.map(event => tableRow(COLUMNS, cellsOf(event))));
    return next.next;
  });
  return {title: "Audit", nodes: [make("div", {class: "title head"}, make("h1", {tabindex: "-1", text: "Audit"})), panel("Sealed events", {}, page.events.length ? list : empty("No sealed event yet"), following)]};
}
