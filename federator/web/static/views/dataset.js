// One dataset: its verification state, its declarations, and datasets above and below it.
import {get} from "../api.js";
import {make, name} from "../dom.js";
import {ago, count, plural, size, state, words} from "../format.js";
import {copyButton, freshness, link, locationParts, note, objectLink, pairs, panel, staleNote, table} from "../parts.js";
import {agreement} from "./datasets.js";
import {listMirrors, mirrorsBetween, planButtons, resultLine} from "./make_plan.js";

export async function show({argument: location, signal}) {
  const [dataset, mirrors] = await Promise.all([get(`/api/v1/datasets/${encodeURIComponent(location)}`, signal), listMirrors(signal)]), {verified} = dataset;
  const result = resultLine(), plans = dataset.disagreements.length ? planButtons(mirrorsBetween(mirrors, dataset.declarations.map(each => each.id)), result, signal) : [];
  const ids = dataset.declarations.map(each => each.id), compared = ids.length > 1 && (dataset.disagreements.length || dataset.duplicates.length) ? await (await import("./side_by_side.js")).sideBySide(ids, signal) : null;
  const near = (title, list) => (list.length ? panel(title, {note: count(list.length)}, table([["Location", "name"]], list.map(each => [link("datasets", each)]), title)) : null);
  const differences = dataset.disagreements.map(each => make("li", {}, make("strong", {text: each.field}), ": ", each.sides.map(side => side.join(", ")).join(" against ")));
  return {title: "Dataset", crumbs: [make("a", {href: "/ui/datasets", text: "Datasets"}), name(dataset.location)], nodes: [
    make("div", {class: "title"}, make("h1", {tabindex: "-1"}, name(locationParts(dataset.location)[0])), state(dataset.state, {tag: true}), agreement(dataset) || null, plans.length ? make("div", {class: "acts"}, plans) : null), result,
    make("div", {class: "sub"}, make("span", {}, name(dataset.location, {mono: true}), copyButton(dataset.location, "location"))), staleNote(dataset.freshness),
    verified?.message ? note("bad", verified.message) : null, differences.length ? note("warn", make("p", {text: "The declarations disagree on:"}), make("ul", {}, differences)) : null,
    make("div", {class: "cols"}, make("div", {class: "stack"}, panel("Declarations", {note: plural(dataset.declarations.length, "declaration")},
      table([["Declaration", "name"], ["Location", "name wide"]], dataset.declarations.map(each => [make("div", {}, objectLink(each.id), each.kind === "table" ? null : state("partial", {text: words(each.kind)})), name(each.location, {mono: true})]), "Declarations")),
    near("Inside", dataset.inside), near("Contains", dataset.holds)),
    panel("Verification", {}, pairs([["State", state(dataset.state)], ["Version", verified?.version], ["Rows", verified?.rows === null || !verified ? null : count(verified.rows)], ["Size", size(verified?.size)],
      ["Fragments", verified?.fragments], ["Indices", verified?.indices], ["Format", verified?.format], ["Written", verified?.changed_at ? ago(verified.changed_at) : null],
      ["Verified", verified ? ago(verified.checked_at) : "never"], ["Through", verified?.checked_through]]))), compared, freshness(dataset.freshness)]};
}
