// What the guards of a plan measured, and what holds it.
import {meter} from "../charts.js";
import {make, name} from "../dom.js";
import {count, state, words} from "../format.js";
import {panel} from "../parts.js";

/* A share of a whole with its limit as a line, or a number and its limit. */
function measured(guard) {
  if (guard.total !== null) return guard.total ? meter(guard.measured, guard.total, guard.limit, {passed: true}) : make("p", {class: "small q", text: `none; the limit is ${guard.limit} %`});
  return make("p", {class: "small q", text: guard.limit === null ? count(guard.measured) : `${count(guard.measured)}; the limit is ${count(guard.limit)}`});
}

// A share and its limit, which the meter of the guard shows: "4 of 9 tables removed or moved within 24 h, max_delete_percent is 20".
const SHARE = /^[\d,]+ of [\d,]+ (?<what>.*), (?<setting>\w+) is [\d.]+$/;

function heldItem(hold, guards) {
  const guard = guards.find(each => each.guard === hold.guard && each.total), {what, setting} = SHARE.exec(hold.detail)?.groups ?? {};
  const content = guard && what ? [state("held", {text: what[0].toUpperCase() + what.slice(1).replace(/ (h|min)$/, "\u00a0$1")}), meter(guard.measured, guard.total, guard.limit, {setting})] : [state("held", {text: hold.detail[0].toUpperCase() + hold.detail.slice(1)}), make("p", {class: "small q", text: words(hold.guard)})];
  return make("li", {}, make("div", {class: "grow"}, content));
}

export function heldPanel({state: current, plan}) {
  if (!plan.held.length) return null;
  // A plan of an earlier version has the texts of its holds only.
  const items = plan.holds?.map(hold => heldItem(hold, plan.guards ?? [])) ?? plan.held.map(text => make("li", {}, state("held", {text})));
  return panel(current === "held" ? "Held" : "Was held", {id: "held"}, make("ul", {class: "checks pad"}, items));
}

/* The guards that let the plan pass. A guard without a limit checks a condition: its number says nothing by itself. */
export function guardPanel(plan) {
  const holding = new Set((plan.holds ?? []).map(hold => hold.guard)), passed = (plan.guards ?? []).filter(guard => !holding.has(guard.guard));
  if (!passed.length) return null;
  const item = guard => make("li", {}, make("div", {class: "grow"}, state("ok", {text: words(guard.guard)}), guard.namespace ? make("span", {class: "small q"}, " in ", name(guard.namespace)) : null,
    guard.limit === null ? null : measured(guard)));
  return panel("Guards without objection", {id: "guards"}, make("ul", {class: "checks pad"}, passed.map(item)));
}
