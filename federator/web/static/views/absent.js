// An object that the index does not have: what is known of it, and where to look next.
import {find} from "../api.js";
import {lastName, make, name, splitId} from "../dom.js";
import {empty, panel, UI} from "../parts.js";
import {events, explanation} from "./explanation.js";

export async function showAbsent(id, signal) {
  const why = await find(`/api/v1/explain/${encodeURIComponent(id)}`, signal), [source] = splitId(id);
  const found = make("a", {class: "btn", href: `${UI}/search?${new URLSearchParams({q: lastName(id)})}`}, "Search ", name(lastName(id)));
  const changes = make("a", {class: "btn", href: `${UI}/changes?${new URLSearchParams({source, from: "-7d"})}`}, "Changes of ", name(source));
  return {nodes: [make("section", {class: "failure"}, make("h1", {tabindex: "-1", text: "Not found"}),
    empty(make("span", {role: "alert"}, "There is no table ", name(id, {mono: true})), "It was removed, or never existed.", {action: make("div", {class: "acts"}, found, changes)})),
  why ? explanation(why) : null, why?.history.length ? panel("History", {}, events([...why.history].reverse(), id)) : null]};
}
