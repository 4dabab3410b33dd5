// Declared and stored columns side by side, by name and in the order of the declaration.
import {make} from "../dom.js";
import {plural} from "../format.js";
import {empty, note, panel, table} from "../parts.js";

const typeText = type => (type === undefined ? "" : typeof type === "string" ? type : JSON.stringify(type));

function pair(declared, stored) {
  const known = new Map((stored ?? []).map(column => [column.name, column])), lines = [];
  for (const column of declared ?? []) {
    lines.push({name: column.name, declared: column.type, stored: known.get(column.name)?.type});
    known.delete(column.name);
  }
  return [...lines, ...[...known.values()].map(column => ({name: column.name, stored: column.type}))];
}

const isOdd = line => line.declared === undefined || line.stored === undefined;

/* The number of columns that only one side has; 0 if one side is unknown. Types differ by dialect, so drift detection compares them. */
export const schemaDifferences = (declared, stored) => (declared && stored ? pair(declared, stored).filter(isOdd).length : 0);

const SIGNS = {add: ["add", "+", "stored only"], del: ["del", "−", "declared only"]};

function row(line, both) {
  const kind = both && line.declared === undefined ? "add" : both && line.stored === undefined ? "del" : null;
  const sign = kind ? make("span", {class: `sign ${SIGNS[kind][0]}`, "aria-hidden": "true", text: SIGNS[kind][1]}) : make("span", {class: "sign"});
  return [make("span", {class: "colname"}, sign, make("code", {}, make("bdi", {text: line.name}))), make("code", {text: typeText(line.declared)}), make("code", {text: typeText(line.stored)}), kind ? SIGNS[kind][2] : ""];
}

export function schemaPanel(declared, verified) {
  const stored = verified?.schema ?? null, both = Boolean(declared && stored), lines = pair(declared, stored), odd = schemaDifferences(declared, stored);
  if (!lines.length) return panel("Columns", {}, empty("No columns are known", "The catalog declares none, and the location was not opened.", {state: "unverified"}));
  const summary = odd ? note("warn", make("strong", {text: `${plural(odd, "column")} of ${lines.length} differ. `}), "A column is declared and not stored, or stored and not declared.") : null;
  return panel("Columns", {note: both ? null : declared ? "declared; the stored columns are not known" : "stored; the catalog declares none"}, summary,
    table([["Column"], ["Declared", "long"], ["Stored", "long"], ["Differs"]], lines.map(line => row(line, both)), "Columns"));
}
