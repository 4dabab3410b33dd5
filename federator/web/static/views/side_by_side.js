// The declarations of one dataset side by side: a column for each, a line for each field that differs, then what all agree on.
import {find} from "../api.js";
import {make, name} from "../dom.js";
import {count, plural, state} from "../format.js";
import {objectLink, panel, table} from "../parts.js";

// Ownership markers, and the time of a catalog's last change, differ by their nature.
const OWN = /^(federator\.|transient_lastDdlTime$)/;
// More columns cannot be compared by eye.
const MOST = 4;

/* What a declaration says, by field. */
const fieldsOf = found => ({Location: found.location, Owner: found.owner, Comment: found.doc, ...Object.fromEntries((found.schema ?? []).map(column => [`Column ${column.name}`, typeof column.type === "string" ? column.type : JSON.stringify(column.type)])),
  ...Object.fromEntries(Object.entries(found.properties).filter(([key]) => !OWN.test(key)).map(([key, value]) => [`Property ${key}`, value]))});

const cell = value => (value === undefined || value === null ? make("span", {class: "q", text: "not set"}) : name(value, {mono: true}));

/**
 * @param {string[]} ids of the declarations
 * @param {AbortSignal} signal
 */
export async function sideBySide(ids, signal) {
  const found = (await Promise.all(ids.slice(0, MOST).map(id => find(`/api/v1/tables/${encodeURIComponent(id)}`, signal)))).filter(Boolean);
  if (found.length < 2) return null;
  const all = found.map(fieldsOf), fields = [...new Set(all.flatMap(Object.keys))].map(field => ({field, values: all.map(each => each[field] ?? null)}));
  const differing = fields.filter(({values}) => new Set(values).size > 1), agreed = fields.filter(each => !differing.includes(each) && each.values[0] !== null);
  const columns = [["Field"], ...found.map(each => [each.id, "long"])], lines = list => list.map(({field, values}) => [make("bdi", {text: field}), ...values.map(cell)]);
  const shown = table(columns, lines(differing), "Declarations side by side");
  for (const [at, each] of found.entries()) shown.querySelectorAll("th")[at + 1].replaceChildren(objectLink(each.id));
  return panel("Side by side", {id: "side-by-side", note: `${plural(differing.length, "field differs", "fields differ")}${ids.length > MOST ? `, the first ${MOST} of ${count(ids.length)} declarations` : ""}`},
    differing.length ? shown : make("p", {class: "pad"}, state("ok", {text: ids.length > found.length ? "All fields of these agree" : "All fields agree"})), agreed.length ? make("details", {}, make("summary", {class: "pad", text: `${plural(agreed.length, "field")} with one value`}),
      table([["Field"], ["Value", "long"]], agreed.map(({field, values}) => [make("bdi", {text: field}), cell(values[0])]), "Fields with one value")) : null);
}
