// A source or a table as it was at a past time: what has a history, and nothing else.
import {get} from "../api.js";
import {make, name} from "../dom.js";
import {ago, count, state, words} from "../format.js";
import {copyButton, empty, link, note, pairs, panel, table} from "../parts.js";
import {childrenPanel} from "./namespace.js";
import {heading} from "./heading.js";

export async function showPastSource(id, signal) {
  const {element} = await childrenPanel(id, signal);
  return {nodes: [heading("source", id), element]};
}

export async function showPastTable(found) {
  const verified = found.dataset, properties = Object.entries(found.properties), columns = found.schema ?? [];
  const bad = verified && !["valid", "declared_only"].includes(verified.state);
  return {nodes: [heading("table", found.id, state(verified?.state ?? "unverified", {tag: true})),
    make("div", {class: "sub"}, make("span", {}, name(found.id, {mono: true}), copyButton(found.id, "id")),
      found.location ? make("span", {}, name(found.location, {mono: true}), copyButton(found.location, "location")) : null, make("span", {text: `revision ${count(found.revision)}`})),
    found.problem ? note("bad", make("strong", {text: "The catalog could not describe this table: "}), found.problem) : null,
    bad ? note("bad", make("strong", {text: `The location was ${words(verified.state)}. `}), verified.message) : null,
    make("div", {class: "cols"}, make("div", {class: "stack"},
      panel("Columns", {note: count(columns.length)}, columns.length ? table([["Name", "name"], ["Type", "long"]], columns.map(column => [name(column.name), make("code", {text: typeof column.type === "string" ? column.type : JSON.stringify(column.type)})]), "Columns") : empty("The catalog declared no columns")),
      panel("Other declarations", {note: count(found.also_declared.length)}, found.also_declared.length ? table([["Declaration", "name"]], found.also_declared.map(id => [link("t", id)]), "Other declarations") : empty("None declared the same location"))),
    make("div", {class: "stack"}, panel("Verification", {}, verified ? pairs([["State", state(verified.state)], ["Note", verified.message], ["State first seen", ago(verified.since)]])
      : empty("Not known", "The location was not verified until then, or its history is no longer kept.", {state: "unverified"})),
    panel("About", {}, pairs([["Comment", found.doc], ["Owner", found.owner], ["Kind", words(found.kind)], ["Native id", found.native_id], ["Unchanged since", `revision ${count(found.since_revision)}`]])),
    properties.length ? panel("Properties", {note: count(properties.length)}, table([["Property"], ["Value", "long"]], properties, "Properties")) : null))]};
}

/* The table, or null for a namespace. */
export const findPastTable = (id, signal) => get(`/api/v1/tables/${encodeURIComponent(id)}`, signal).catch(error => {
  if (error.status === 404) return null;
  throw error;
});
