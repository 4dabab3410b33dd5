// The graph of declarations: origins at the left, and to the right of each what mirrors made of it. Nested lists, so that it can be read
// and walked without seeing it; lines are drawn by the style sheet.
import {icon, lastName, make, name, splitId} from "../dom.js";
import {ago, plural, state, words} from "../format.js";
import {empty, link, note, panel, path} from "../parts.js";
import {flow, via} from "./flow.js";

/* Where a table is inside its source. */
const inner = id => splitId(id).slice(1).join(" › ") || lastName(id);

function card(entry, {here, drifted, odd}) {
  const problem = entry.planned ? state(entry.planned.refused ? "held" : "pending", {text: entry.planned.refused ? "not copied" : "planned"}) : !entry.is_declared ? state("missing", {text: "not in its catalog"}) : drifted ? state("drifted", {text: plural(drifted, "difference")}) :
    odd ? state("drifted", {text: odd}) : entry.state ? state(entry.state) : state("unverified", {text: "no location"});
  const heading = make("div", {}, icon("source"), make("strong", {}, name(entry.source)), here ? make("span", {class: "q", text: "(this)"}) : null, problem);
  const content = [heading, make("small", {class: "where", title: inner(entry.id)}, make("bdi", {}, name(inner(entry.id), {long: 80}))), entry.location ? make("small", {class: "mono", title: entry.location}, name(entry.location)) : null];
  if (entry.planned) return make("div", {class: "card"}, content);
  return here ? make("div", {class: "card here", "aria-current": "true"}, content) : make("a", {class: "card", href: path("t", entry.id)}, content);
}

/* What a mirror does next with the pair; known for the pairs of this table only. */
function mirrorState(edge, id, why) {
  const other = edge.origin === id ? edge.target : edge.target === id ? edge.origin : null;
  const part = why.parts.find(each => other && each.mirror === edge.mirror && each.other === other);
  if (!part) return null;
  return part.plan === null ? state("never", {text: "no plan yet"}) : part.reason ? state("held", {text: words(part.reason)}) : part.next.startsWith("nothing") ? state("ok", {text: "in sync"}) : state("pending");
}

const copied = (edge, id, why) => via([icon("mirror", {label: edge.updated_at ? "copied by mirror" : "would be copied by mirror"}), link("mirrors", edge.mirror)],
  [mirrorState(edge, id, why), edge.updated_at ? ago(edge.updated_at) : null]);

/* Copies that a mirror would make, and that the ledger does not have: planned, or refused and held. */
const planned = (graph, why) => why.parts.filter(part => part.role === "origin" && part.other && !part.in_ledger && !graph.mirrored.some(edge => edge.mirror === part.mirror && edge.target === part.other))
  .map(part => ({mirror: part.mirror, origin: graph.id, target: part.other, refused: Boolean(part.reason)}));

/**
 * @param {any} graph response of /graph
 * @param {any} why response of /explain
 * @param {{drift: any[], odd: Map<string, string>}} marks drift of this table, and what is odd about other declarations
 */
export function graphPanel(graph, why, {drift, odd}) {
  const tables = new Map(graph.tables.map(entry => [entry.id, entry])), waiting = planned(graph, why), edges = [...graph.mirrored, ...waiting];
  const shown = new Set(), drawn = id => shown.has(id);
  const between = id => drift.filter(each => [each.subject, each.other].includes(id) && [each.subject, each.other].includes(graph.id) && id !== graph.id).length;
  const branch = (id, edge) => {
    shown.add(id);
    const entry = tables.get(id) ?? {id, source: splitId(id)[0], planned: edge};
    const below = edges.filter(edge => edge.origin === id && !drawn(edge.target));
    const children = below.map(edge => (drawn(edge.target) ? null : make("li", {class: waiting.includes(edge) ? "planned" : null}, copied(edge, graph.id, why), branch(edge.target, edge))));
    return [card(entry, {here: id === graph.id, drifted: between(id), odd: odd.get(id)}), children.some(Boolean) ? make("ul", {}, children) : null];
  };
  // Roots first; what is left then is part of a ring, which begins at its first table.
  const roots = graph.tables.filter(entry => entry.level === 0), items = [...roots, ...graph.tables].map(entry => (drawn(entry.id) ? null : make("li", {}, branch(entry.id))));
  const copies = new Set(graph.mirrored.map(edge => edge.target)).size, origins = roots.filter(entry => graph.mirrored.some(edge => edge.origin === entry.id)).length;
  const alone = roots.length - origins, made = `${plural(origins, "origin")}, ${plural(copies, "copy", "copies")} by ${plural(new Set(graph.mirrored.map(edge => edge.mirror)).size, "mirror")}`;
  const text = !copies ? `${plural(alone, "declaration")}, no copy` : alone ? `${made}, ${plural(alone, "other declaration")}` : made;
  return panel("Origins and copies", {note: text}, graph.is_complete ? null : note("warn", `The graph is larger: only the first ${graph.tables.length} tables are shown.`),
    flow("Origins and copies", "From origins to copies", text, items),
    why.parts.length || copies ? null : empty("No mirror has this table", null, {state: "skipped"}));
}
