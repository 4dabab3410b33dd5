// One table: declarations and their graph, verification, schema, versions, history, explanation, and code that opens it.
import {find, get, query, readPerson} from "../api.js";
import {make, name} from "../dom.js";
import {ago, count, plural, size, state, words} from "../format.js";
import {copyButton, crawledAgo, empty, figures, freshness, note, objectLink, pairs, panel, path, staleNote, table} from "../parts.js";
import {graphPanel} from "./declarations.js";
import {driftRows} from "./drift.js";
import {events, explanation} from "./explanation.js";
import {heading} from "./heading.js";
import {openPanels} from "./open_in.js";
import {countDifferences, schemaPanel} from "./schema.js";
import {tabs} from "./tabs.js";
import {verifyParts} from "./verify.js";
import {versionsPanels} from "./versions.js";

function numbersOf(verified, dataset) {
  const written = dataset?.verified?.changed_at;
  return figures([["Version", verified.version], ["Rows", verified.rows === null ? null : count(verified.rows)], ["Size", size(dataset?.verified?.size)],
    ["Fragments", verified.fragments === null ? null : count(verified.fragments)], ["Indices", dataset?.verified?.indices], ["Written", written ? ago(written) : null]]);
}

// States of a location that need no banner. The banner has the message of any other.
const EXPECTED = ["valid", "declared_only"];

function verification(verified, unverifiable, since) {
  if (!verified) return panel("Verification", {}, empty(unverifiable ? "Not verified" : "Not verified yet", unverifiable ?? "The location was never opened.", {state: "unverified"}));
  return panel("Verification", {}, pairs([["State", state(verified.state)], ["Note", EXPECTED.includes(verified.state) ? verified.message : null], ["State first seen", since ? ago(since) : null], ["Verified", ago(verified.checked_at)], ["Through", verified.checked_through]]));
}

/* What is odd about declarations of the location, by object id. */
function oddDeclarations(dataset) {
  const differing = (dataset?.disagreements ?? []).flatMap(each => each.sides.flat()).map(id => [id, "differs"]);
  return new Map([...differing, ...(dataset?.duplicates ?? []).map(id => [id, "duplicate"])]);
}

/* Each declaration of the location: whether it agrees with the others. */
function declarations(found, dataset, odd) {
  if (!dataset) return panel("Declarations", {}, empty("No location", "The catalog does not tell where the table is stored.", {state: "unverified"}));
  const body = dataset.declarations.map(entry => [objectLink(entry.id, entry.id === found.id),
    dataset.declarations.length > 1 ? state(odd.has(entry.id) ? "drifted" : "ok", {text: odd.get(entry.id) ?? "agrees"}) : null,
    name(entry.location, {mono: true})]);
  const differences = dataset.disagreements.map(each => make("li", {}, make("strong", {text: each.field}), ": ", each.sides.map((side, at) => [at ? " against " : "", side.map((id, nth) => [nth ? ", " : "", name(id)])])));
  return panel("Declarations", {note: `${plural(dataset.declarations.length, "declaration")} of one dataset`},
    differences.length ? note("warn", make("p", {text: "They disagree on:"}), make("ul", {}, differences)) : null,
    table([["Declaration", "name"], ["Agreement", "fit full"], ["Location", "name wide"]], body, "Declarations"),
    make("a", {class: "location", href: path("datasets", dataset.location)}, "Dataset ", name(dataset.location, {mono: true}), state(dataset.state)));
}

/* Since when a location is not well, and what was stored when it was. */
function loss(why) {
  const {last_valid: last} = why;
  return make("p", {}, why.verified_since ? make("span", {}, "This state was first seen ", ago(why.verified_since), ". ") : null, last ? make("span", {}, "Last valid", last.checked_at ? [" ", ago(last.checked_at)] : null,
    last.version === null ? null : [": ", make("strong", {text: `version ${count(last.version)}`})], last.rows === null ? null : `, ${plural(last.rows, "row")}`, ".") : "It was not found valid before.");
}

function problem(found, why) {
  const verified = found.dataset;
  if (found.problem) return note("bad", make("strong", {text: "The catalog could not describe this table: "}), found.problem);
  if (verified && !EXPECTED.includes(verified.state)) return note("bad", make("strong", {text: `The location is ${words(verified.state)}. `}), verified.message, loss(why));
  return null;
}

export async function showTable(found, given, signal) {
  const key = encodeURIComponent(found.id);
  const [person, drifted, why, graph, schema, dataset] = await Promise.all([readPerson(), get(query("/api/v1/drift", {about: found.id}), signal), get(`/api/v1/explain/${key}`, signal),
    get(`/api/v1/graph/${key}`, signal), get(`/api/v1/schema/${key}`, signal),
    found.location ? find(`/api/v1/datasets/${encodeURIComponent(found.location)}`, signal) : null]);
  const properties = Object.entries(found.properties), verified = found.dataset, differing = countDifferences(schema), odd = oddDeclarations(dataset), verify = verifyParts(found, person, signal);
  const newest = [...why.history].reverse();
  let versions = null;
  const about = panel("About", {}, pairs([["Comment", found.doc], ["Owner", found.owner], ["Kind", found.kind === "table" ? null : state("partial", {text: words(found.kind)})],
    ["Native id", found.native_id], ["Format", dataset?.verified?.format], ["Unchanged since", `revision ${count(found.since_revision)}`]]));
  const listed = properties.length ? panel("Properties", {note: count(properties.length)}, table([["Property"], ["Value", "long most"]], properties, "Properties")) : null;
  const views = [
    {id: "overview", title: "Overview", content: () => [verified ? numbersOf(verified, dataset) : null, graphPanel(graph, why, {drift: drifted.drift, odd}), make("div", {class: "cols"}, make("div", {class: "stack"}, declarations(found, dataset, odd),
      panel("Drift", {note: drifted.drift.length ? count(drifted.drift.length) : null}, drifted.drift.length ? driftRows(drifted.drift) : empty("No drift is known", null, {state: "ok"})),
      why.history.length ? panel("Latest changes", {}, events(newest.slice(0, 5), found.id)) : null), make("div", {class: "stack"}, verification(verified, found.unverifiable, why.verified_since), about, listed))]},
    {id: "schema", title: "Schema", badge: differing ? `${differing} differ` : null, content: () => [schemaPanel(schema)]},
    {id: "versions", title: "Versions", content: () => (versions ??= versionsPanels(found.id, signal))},
    {id: "history", title: "History", content: () => [panel("History", {}, why.history.length ? events(newest, found.id) : empty("No change since the first crawl"))]},
    {id: "explain", title: "Explain", content: () => [explanation(why)]},
    {id: "open", title: "Open in …", content: () => openPanels(found.id, signal)},
  ];
  return {nodes: [heading("table", found.id, state(verified?.state ?? "unverified", {tag: true}), drifted.drift.length ? state(drifted.drift.some(each => each.severity === "high") ? "high" : "drifted",
    {tag: true, text: `drift: ${count(drifted.drift.length)}`}) : null, verify.button),
  make("div", {class: "sub"}, make("span", {}, name(found.id, {mono: true}), copyButton(found.id, "id")),
    found.location ? make("span", {}, name(found.location, {mono: true}), copyButton(found.location, "location")) : null, make("span", {}, "as crawled ", crawledAgo(found.freshness)),
    verified?.checked_at ? make("span", {}, "verified ", ago(verified.checked_at)) : null),
  verify.line,
  staleNote([found.freshness]), problem(found, why), ...tabs("About this table", views, given.get("tab")), freshness([found.freshness])]};
}

