// One table: verification, declarations, schema, history, explanation.
import {find, get, query} from "../api.js";
import {make, name} from "../dom.js";
import {ago, count, plural, size, state, words} from "../format.js";
import {copyButton, empty, freshness, link, note, pairs, panel, path, rows, staleNote, table} from "../parts.js";
import {driftRows} from "./drift.js";
import {heading} from "./object.js";
import {schemaPanel, schemaDifferences} from "./schema.js";
import {tabs} from "./tabs.js";

function figures(verified, dataset) {
  const written = dataset?.verified?.changed_at;
  const values = [["Version", verified.version], ["Rows", verified.rows === null ? null : count(verified.rows)], ["Size", size(dataset?.verified?.size)],
    ["Fragments", verified.fragments === null ? null : count(verified.fragments)], ["Indices", dataset?.verified?.indices], ["Written", written ? ago(written) : null], ["Verified", ago(verified.checked_at)]];
  return make("dl", {class: "figures thin"}, values.filter(([, value]) => value !== null && value !== undefined).map(([title, value]) =>
    make("div", {}, make("dt", {text: title}), make("dd", {}, value.nodeType ? value : String(value)))));
}

function verification(verified) {
  if (!verified) return panel("Verification", {}, empty("Not verified yet", "The location was never opened.", {state: "unverified"}));
  return panel("Verification", {}, pairs([["State", state(verified.state)], ["Note", verified.message], ["Version", verified.version],
    ["Rows", verified.rows === null ? null : count(verified.rows)], ["Verified", ago(verified.checked_at)], ["Through", verified.checked_through]]));
}

/* Each declaration of the location: its part in the mirrors, and whether it agrees with the others. */
function declarations(found, dataset) {
  if (!dataset) return panel("Declarations", {}, empty("No location", "The catalog does not tell where the table is stored.", {state: "unverified"}));
  const role = id => {
    const copies = found.mirrored.filter(entry => entry.origin === id), source = found.mirrored.find(entry => entry.target === id);
    return source ? make("span", {}, "copy of ", link("t", source.origin), " by ", link("mirrors", source.mirror)) : copies.length ? `origin of ${plural(copies.length, "copy", "copies")}` : "";
  };
  const odd = new Set([...dataset.duplicates, ...dataset.disagreements.flatMap(each => each.sides.flat())]);
  const body = dataset.declarations.map(entry => [entry.id === found.id ? make("span", {}, name(entry.id), " (this)") : link("t", entry.id), role(entry.id),
    dataset.declarations.length > 1 ? state(odd.has(entry.id) ? "drifted" : "ok", {text: dataset.duplicates.includes(entry.id) ? "duplicate" : odd.has(entry.id) ? "differs" : "agrees"}) : null,
    name(entry.location, {mono: true})]);
  const differences = dataset.disagreements.map(each => make("li", {}, make("strong", {text: each.field}), ": ", each.sides.map(side => side.join(", ")).join(" against ")));
  return panel("Declarations", {note: `${plural(dataset.declarations.length, "declaration")} of one dataset`},
    differences.length ? note("warn", make("p", {text: "They disagree on:"}), make("ul", {}, differences)) : null,
    table([["Declaration", "name"], ["Role", "long"], ["Agreement"], ["Location", "name"]], body, "Declarations"),
    make("a", {class: "location", href: path("datasets", dataset.location)}, "Dataset ", name(dataset.location, {mono: true}), state(dataset.state)));
}

function mirrored(entries, id) {
  if (!entries.length) return null;
  const side = other => (other === id ? "this" : link("t", other));
  return panel("Mirrored", {}, table([["Mirror"], ["From", "name"], ["To", "name"], ["Since"]],
    entries.map(entry => [link("mirrors", entry.mirror), side(entry.origin), side(entry.target), ago(entry.updated_at)]), "Mirrored"));
}

const events = list => make("ol", {class: "rows log"}, list.map(event => make("li", {}, make("span", {class: "sign mod", "aria-hidden": "true", text: "~"}),
  make("div", {class: "what"}, make("span", {text: event.what}), event.detail || event.mirror ? make("small", {text: [event.mirror, event.detail].filter(Boolean).join(": ")}) : null),
  ago(event.at, {suffix: ""}))));

function explanation(why) {
  const parts = why.parts.map(part => ({state: part.reason ? "held" : part.next.startsWith("nothing") ? "ok" : "pending", title: `${part.mirror}, ${part.role}: ${part.next}`,
    detail: part.other ? link("t", part.other) : null}));
  const {evidence} = why;
  parts.push({state: evidence.proves ? "ok" : "unverified", title: make("span", {}, `Evidence: the listing of ${evidence.namespace || why.source} is ${evidence.state}`), detail: evidence.proves
    ? "It proves what exists and what is absent." : evidence.reason || "It proves nothing."});
  return panel("Explanation", {}, make("p", {class: "pad", text: why.summary}), rows(parts));
}

function problem(found) {
  const verified = found.dataset;
  if (found.problem) return note("bad", make("strong", {text: "The catalog could not describe this table: "}), found.problem);
  if (verified && !["valid", "declared_only"].includes(verified.state)) return note("bad", make("strong", {text: `The location is ${words(verified.state)}. `}), verified.message);
  return null;
}

export async function showTable(found, given, signal) {
  const key = encodeURIComponent(found.id);
  const [drifted, why, dataset] = await Promise.all([get(query("/api/v1/drift", {about: found.id}), signal), get(`/api/v1/explain/${key}`, signal),
    found.location ? find(`/api/v1/datasets/${encodeURIComponent(found.location)}`, signal) : null]);
  const properties = Object.entries(found.properties), verified = found.dataset, differing = schemaDifferences(found.schema, verified?.schema);
  const about = panel("About", {}, pairs([["Comment", found.doc], ["Owner", found.owner], ["Kind", found.kind === "table" ? null : state("partial", {text: words(found.kind)})],
    ["Native id", found.native_id], ["Format", dataset?.verified?.format], ["Since", `revision ${count(found.since_revision)}`]]));
  const listed = properties.length ? panel("Properties", {note: count(properties.length)}, table([["Property"], ["Value", "long"]], properties, "Properties")) : null;
  const views = [
    {id: "overview", title: "Overview", content: () => [verified ? figures(verified, dataset) : null, make("div", {class: "cols"}, make("div", {class: "stack"}, declarations(found, dataset),
      panel("Drift", {note: drifted.drift.length ? count(drifted.drift.length) : null}, drifted.drift.length ? driftRows(drifted.drift) : empty("No drift is known", null, {state: "ok"})),
      mirrored(found.mirrored, found.id), why.history.length ? panel("Latest changes", {}, events(why.history.slice(0, 5))) : null), make("div", {class: "stack"}, verification(verified), about, listed))]},
    {id: "schema", title: "Schema", badge: differing ? `${differing} differ` : null, content: () => [schemaPanel(found.schema, verified)]},
    {id: "history", title: "History", content: () => [panel("History", {}, why.history.length ? events(why.history) : empty("No change since the first crawl"))]},
    {id: "explain", title: "Explain", content: () => [explanation(why)]},
  ];
  return {nodes: [heading("table", found.id, state(verified?.state ?? "unverified", {tag: true}), drifted.drift.length ? state(drifted.drift.some(each => each.severity === "high") ? "high" : "drifted",
    {tag: true, text: `drift: ${count(drifted.drift.length)}`}) : null),
  make("div", {class: "sub"}, make("span", {}, name(found.id, {mono: true}), copyButton(found.id, "id")),
    found.location ? make("span", {}, name(found.location, {mono: true}), copyButton(found.location, "location")) : null, make("span", {}, "as crawled ", ago(found.freshness.crawled_at))),
  staleNote([found.freshness]), problem(found), ...tabs("About this table", views, given.get("tab")), freshness([found.freshness])]};
}

