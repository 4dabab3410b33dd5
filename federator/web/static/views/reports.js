// Stored reports, their files, and making one.
import {download, get, query, readPerson, send} from "../api.js";
import {getElement, make, name} from "../dom.js";
import {ago, size} from "../format.js";
import {button, empty, more, panel, path, table, tableRow, unlessAllowed} from "../parts.js";
import {attempt, reload} from "../router.js";
import {followRequest, requestLine} from "./requests.js";

const COLUMNS = [["Report"], ["Data of"], ["By"], ["Files", "long most"]];
const KINDS = ["inventory", "drift", "mirrors", "freshness", "growth", "access"];

export const titleOf = kind => kind[0].toUpperCase() + kind.slice(1);

/* Buttons that save the files of a report; they show the kind of each file. */
export const fileButtons = report => report.files.map(file =>
  button(`${file.name.split(".").pop()} (${size(file.size)})`, () => attempt(() => download(`/api/v1/reports/${encodeURIComponent(report.id)}/${encodeURIComponent(file.name)}`, file.name)), {shape: "save", "aria-label": `Save ${file.name}`}));

const cellsOf = report => [make("a", {href: path("reports", report.id)}, report.name === report.kind ? titleOf(report.kind) : [name(report.name), ` (${titleOf(report.kind)})`]),
  ago(report.made_at), name(report.actor), make("span", {class: "files"}, fileButtons(report))];

/* A form for the kind or the name of a report, and the line that follows its request. */
function maker(names, person, signal) {
  const which = make("select", {id: "which", "aria-label": "Report"}, names.map(each => make("option", {value: each, text: KINDS.includes(each) ? titleOf(each) : each})));
  const line = make("p", {id: "made", role: "status"});
  const submit = button("Make now", () => attempt(async () => {
    const queued = await send("POST", "/api/v1/reports", {report: which.value});
    const {run} = await followRequest(queued, (request, state) => line.replaceChildren(...requestLine(request, state).filter(Boolean)), signal);
    if (run?.state !== "ok") return;
    await reload();
    getElement(document, "#made").replaceChildren("Made: ", make("a", {href: path("reports", run.id), text: "open the report"}));
  }), {kind: "main", shape: "report", ...unlessAllowed(person, "operator", {everything: true})});
  return {acts: make("div", {class: "acts"}, which, submit), line};
}

export async function show({signal}) {
  const [page, person] = await Promise.all([get("/api/v1/reports", signal), readPerson()]), list = table(COLUMNS, page.reports.map(cellsOf), "Reports"), body = getElement(list, "tbody");
  const following = more(page.next, async cursor => {
    const next = await get(query("/api/v1/reports", {cursor}), signal);
    body.append(...next.reports.map(report => tableRow(COLUMNS, cellsOf(report))));
    return next.next;
  });
  const {acts, line} = maker([...new Set([...KINDS, ...page.reports.map(report => report.name)])], person, signal);
  return {title: "Reports", nodes: [make("div", {class: "title head"}, make("h1", {tabindex: "-1", text: "Reports"}), acts), line,
    panel("Stored reports", {}, page.reports.length ? list : empty("No report yet", "Reports with a schedule appear here, too."), following)]};
}
