// Datasets by location, with their declarations.
import {get, query} from "../api.js";
import {getElement, make, name} from "../dom.js";
import {ago, count, state, words} from "../format.js";
import {empty, freshness, link, more, panel, table, tableRow, UI} from "../parts.js";
import {setQuery} from "../router.js";
import {choice} from "./filters.js";

const COLUMNS = [["Location", "name wide"], ["State"], ["Declarations", "n"], ["Agreement", "full"], ["Rows", "n"], ["Verified"]];
const STATES = ["", "valid", "declared_only", "empty", "missing", "not_lance", "corrupt", "denied", "unreachable", "refers_outside", "unverified"];

export const agreement = dataset => (dataset.disagreements.length ? state("drifted", {text: `disagree on ${dataset.disagreements.map(each => each.field).join(", ")}`})
  : dataset.duplicates.length ? state("drifted", {text: `declared ${dataset.duplicates.length} times in one source`}) : dataset.declarations.length > 1 ? state("ok", {text: "agree"}) : "");

const cellsOf = dataset => [link("datasets", dataset.location, dataset.location), state(dataset.state), count(dataset.declarations.length), agreement(dataset),
  dataset.verified?.rows === null || !dataset.verified ? "" : count(dataset.verified.rows), dataset.verified ? ago(dataset.verified.checked_at) : "never"];

export async function show({query: given, signal}) {
  const filters = {state: given.get("state"), declared_in: given.get("declared_in"), conflicts: given.get("conflicts"), several: given.get("several"), limit: 100};
  const [page, {sources}] = await Promise.all([get(query("/api/v1/datasets", filters), signal), get("/api/v1/sources", signal)]), list = table(COLUMNS, page.datasets.map(cellsOf), "Datasets"), body = getElement(list, "tbody");
  const following = more(page.next, async cursor => {
    const next = await get(query("/api/v1/datasets", {...filters, cursor}), signal);
    body.append(...next.datasets.map(each => tableRow(COLUMNS, cellsOf(each))));
    return next.next;
  });
  const chip = (text, pressed, values) => make("button", {type: "button", class: "chip", "aria-pressed": String(pressed), onclick: () => setQuery(values), text});
  const chips = make("div", {class: "chips bar", role: "group", "aria-label": "State"}, STATES.map(each => chip(words(each) || "all", (filters.state ?? "") === each, {state: each})),
    chip("declared more than once", Boolean(filters.several), {several: filters.several ? "" : "true"}), chip("disagreements and duplicates", Boolean(filters.conflicts), {conflicts: filters.conflicts ? "" : "true"}));
  const none = filters.state || filters.conflicts || filters.several || filters.declared_in ? empty("No dataset matches", make("a", {href: `${UI}/datasets`, text: "Clear the filter"})) : empty("No dataset yet", "Crawl a source first.");
  return {title: "Datasets", nodes: [make("div", {class: "title head"}, make("h1", {tabindex: "-1", text: "Datasets"})), chips,
    make("div", {class: "filters"}, choice("Declared in", sources.map(source => [source.name, source.name]), filters.declared_in, "declared_in")), panel("Datasets", {}, page.datasets.length ? list : none, following), freshness(page.freshness)]};
}
