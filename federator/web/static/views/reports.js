// Stored reports and their files.
import {download, get, query, send} from "../api.js";
import {getElement, make, name} from "../dom.js";
import {ago, size} from "../format.js";
import {button, empty, more, panel, table, tableRow} from "../parts.js";
import {announce, attempt} from "../router.js";
import {runLink} from "./runs.js";

const COLUMNS = [["Report"], ["Kind"], ["Data of"], ["By"], ["Run"], ["Files", "long"]];

const cellsOf = report => [name(report.name), report.kind, ago(report.made_at), name(report.actor), runLink(report.id), make("span", {}, report.files.map(file =>
  button(`${file.name} (${size(file.size)})`, () => attempt(() => download(`/api/v1/reports/${encodeURIComponent(report.id)}/${encodeURIComponent(file.name)}`, file.name)), {shape: "report"})))];

export async function show({signal}) {
  const page = await get("/api/v1/reports", signal), list = table(COLUMNS, page.reports.map(cellsOf), "Reports"), body = getElement(list, "tbody");
  const following = more(page.next, async cursor => {
    const next = await get(query("/api/v1/reports", {cursor}), signal);
    body.append(...next.reports.map(report => tableRow(COLUMNS, cellsOf(report))));
    return next.next;
  });
  const create = button("Create the inventory", () => attempt(async () => {
    const {id} = await send("POST", "/api/v1/reports", {report: "inventory"});
    announce(`Report requested (request ${id}). It is created when the worker is free.`);
  }), {kind: "main", shape: "report"});
  return {title: "Reports", nodes: [make("div", {class: "title head"}, make("h1", {tabindex: "-1", text: "Reports"}), make("div", {class: "acts"}, create)),
    panel("Stored reports", {}, page.reports.length ? list : empty("No report yet", "Reports with a schedule appear here, too."), following)]};
}
