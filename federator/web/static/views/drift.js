// Drift, open or resolved, by severity.
import {get, query} from "../api.js";
import {getElement, make, name} from "../dom.js";
import {ago, count, state, words} from "../format.js";
import {empty, freshness, locationLink, more, objectLink, panel, path, rows, table, tableRow, UI} from "../parts.js";
import {chips, choice} from "./filters.js";
import {listMirrors, mirrorsBetween, planButtons, resultLine} from "./make_plan.js";

const COLUMNS = [["Difference", "full"], ["Table", "name"], ["Differs from", "name"], ["Detail", "long part"], ["First seen"], ["Remedy", "full"]];

const subject = item => (item.kind === "orphan" ? locationLink(item.subject, `${UI}/declare?${new URLSearchParams({location: item.subject})}`) : objectLink(item.subject));

const otherSide = other => (other ? other.includes("://") ? locationLink(other) : objectLink(other) : null);

/* What a plan can mend: the difference between two catalogs, by their mirror; an orphan, by its declaration. */
const remedy = (item, plans) => (item.resolved_at ? null : item.kind === "orphan" ? make("a", {class: "btn", href: `${UI}/declare?${new URLSearchParams({location: item.subject})}`, text: "Declare"})
  : plans(item).length ? make("span", {class: "nw"}, plans(item)) : null);

const cellsOf = plans => item => [make("div", {}, state(item.severity, {text: words(item.kind)}), make("small", {class: "lacking", text: item.severity})), subject(item), otherSide(item.other), item.detail, ago(item.first_seen), remedy(item, plans)];

/* Drift about one object, as rows. */
export const driftRows = list => rows(list.map(item => ({state: item.severity, title: make("span", {}, `${words(item.kind)}: `, name(item.subject)),
  detail: make("span", {}, item.detail, item.other ? make("span", {}, " · differs from ", name(item.other)) : null), time: item.first_seen,
  action: item.kind === "orphan" ? make("a", {class: "btn", href: `${UI}/declare?${new URLSearchParams({location: item.subject})}`, text: "Declare"}) : make("a", {class: "btn", href: path("t", item.subject), text: "Open"})})));

const KINDS = ["duplicate", "location_differs", "schema_differs", "properties_differ", "missing", "dangling_mirror", "name_clash", "orphan"];
const SEVERITIES = ["high", "medium", "low"];

/* How many differences there are of a severity and of a kind; an empty text stands for all of them. */
const sumOf = (counts, severity, kind) => counts.filter(each => (!severity || each.severity === severity) && (!kind || each.kind === kind)).reduce((sum, each) => sum + each.count, 0);

export async function show({query: given, signal}) {
  const filters = {severity: given.get("severity"), kind: given.get("kind"), source: given.get("source"), resolved: given.get("resolved"), limit: 100};
  const [page, mirrors, {sources}, {counts}] = await Promise.all([get(query("/api/v1/drift", filters), signal), listMirrors(signal), get("/api/v1/sources", signal),
    get(query("/api/v1/drift/counts", {source: filters.source, resolved: filters.resolved}), signal)]), result = resultLine();
  const cells = cellsOf(item => planButtons(mirrorsBetween(mirrors, [item.subject, item.other]), result, signal));
  const list = table(COLUMNS, page.drift.map(cells), "Drift"), body = getElement(list, "tbody");
  const following = more(page.next, async cursor => {
    const next = await get(query("/api/v1/drift", {...filters, cursor}), signal);
    body.append(...next.drift.map(item => tableRow(COLUMNS, cells(item))));
    return next.next;
  });
  const filtered = filters.severity || filters.kind || filters.source;
  const none = filtered ? empty("No drift matches", make("a", {href: `${UI}/drift`, text: "Clear the filter"})) : empty("Nothing has drifted", "as the last drift detection found it", {state: "ok"});
  return {title: "Drift", nodes: [make("div", {class: "title head"}, make("h1", {tabindex: "-1", text: "Drift"})), chips("Severity", ["", ...SEVERITIES].map(value => [value, value || "all", sumOf(counts, value, filters.kind)]), filters.severity, "severity"),
    make("div", {class: "filters"}, chips("State", [["", "open"], ["true", "resolved"]], filters.resolved, "resolved"), choice("Kind", KINDS.map(value => [value, `${words(value)} (${count(sumOf(counts, filters.severity, value))})`]), filters.kind, "kind"),
      choice("Source", sources.map(source => [source.name, source.name]), filters.source, "source")), result, panel(filters.resolved ? "Resolved drift" : "Open drift", {note: count(sumOf(counts, filters.severity, filters.kind))}, page.drift.length ? list : none, following), freshness(page.freshness)]};
}
