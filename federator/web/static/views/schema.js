// Declared and stored columns side by side, as the API pairs them.
import {make} from "../dom.js";
import {plural, state} from "../format.js";
import {empty, link, note, panel, table} from "../parts.js";

/** @type {Record<string, [string, string, string]>} */
const SIGNS = {not_declared: ["add", "+", "stored, not declared"], not_stored: ["del", "−", "declared, not stored"], other_type: ["not", "~", "another type"]};
const LONG = 48;

/* A type; a long one, which has nested fields, is folded. */
function typeText(type, wrap) {
  if (type === null) return make("span", {class: "q", text: "–"});
  const code = make("code", {}, make(wrap ?? "span", {}, make("bdi", {text: type})));
  return type.length <= LONG ? code : make("details", {class: "type"}, make("summary", {}, make("code", {}, make("bdi", {text: `${type.slice(0, LONG - 12)}…`}))), code);
}

/* In how many copies a column is declared, and in which it is not. */
function inCopies(column, copies) {
  const missing = column.missing_in;
  if (!missing.length) return make("span", {class: "q", text: `all ${copies.length}`});
  return make("span", {}, state("drifted", {text: `${copies.length - missing.length} of ${copies.length}`}), make("small", {class: "lacking"}, "not in ", missing.map((copy, at) => [at ? ", " : "", link("t", copy)])));
}

function row(column, copies) {
  const [kind, sign, words] = SIGNS[column.difference] ?? [];
  return [make("span", {class: "colname"}, make("span", {class: kind ? `sign ${kind}` : "sign", "aria-hidden": "true", text: sign}), make("code", {}, make("bdi", {text: column.name}))),
    typeText(column.declared, kind === "del" || kind === "not" ? "del" : null), typeText(column.stored, kind === "add" || kind === "not" ? "ins" : null), make("span", {class: kind ? "" : "q", text: words ?? "no"}), ...copies.length ? [inCopies(column, copies)] : []];
}

export const countDifferences = schema => schema.columns.filter(column => column.difference).length;

export function schemaPanel(schema) {
  const {columns, copies} = schema, odd = countDifferences(schema), both = schema.declares_columns && schema.is_stored_known;
  if (!columns.length) return panel("Columns", {}, empty("No columns are known", "The catalog declares none, and the location was not opened.", {state: "unverified"}));
  const summary = odd ? note("warn", make("strong", {text: `${plural(odd, "column")} of ${columns.length} ${odd === 1 ? "differs" : "differ"}. `}), "Types are compared by their group, because catalogs name them differently.")
    : schema.is_reordered ? note("warn", make("strong", {text: "The columns are in another order "}), "than they are stored in.") : both ? note("ok", "Both sides have the same columns.") : null;
  // What is not known of all columns has no column of its own.
  const isShown = [true, schema.declares_columns, schema.is_stored_known, both, true], of = cells => cells.filter((_, at) => isShown[at]);
  const known = both ? null : schema.declares_columns ? "declared; the stored columns are not known" : "stored; the catalog declares none";
  return panel("Columns", {note: known}, summary, table(of([["Column", "full"], ["Declared", "long full"], [schema.version === null ? "Stored" : `Stored, version ${schema.version}`, "long full"], ["Differs", "full"], ...copies.length ? [["In copies", "full"]] : []]),
    columns.map(column => of(row(column, copies))), "Columns"));
}
