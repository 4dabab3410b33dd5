// What must hold when the changes of a plan are applied, and whether it still does.
import {make, name} from "../dom.js";
import {count, plural, state} from "../format.js";
import {crawledAgo, panel} from "../parts.js";
import {openChanges, REMOVALS} from "./decision.js";
import {OPEN} from "./plans.js";

/* Whether a source is as the plan was made from it. */
function sourceItem(fresh, planned) {
  const isSame = fresh.revision === planned;
  return make("li", {}, make("div", {class: "grow"}, state(fresh.state !== "ok" ? fresh.state : isSame ? "ok" : "outdated"), " ", name(fresh.source), make("p", {class: "small q"},
    isSame ? `at revision ${count(planned)}, as planned` : `at revision ${count(fresh.revision)}, planned from ${count(planned)}: what moved since is skipped`, ", crawled ", crawledAgo(fresh))));
}

/**
 * @param {any} row response of /plans/{digest}
 */
export function preconditionsPanel(row) {
  const {plan} = row, [change] = plan.changes;
  if (!change || !OPEN.includes(row.state)) return null;
  const planned = new Map([[change.origin_source, plan.origin_revision], [change.target_source, plan.target_revision]]);
  const removals = openChanges(row).filter(each => REMOVALS.includes(each.action)).length;
  return panel("Preconditions", {id: "preconditions"}, make("ul", {class: "checks pad"}, row.freshness.filter(fresh => planned.has(fresh.source)).map(fresh => sourceItem(fresh, planned.get(fresh.source))),
    removals ? make("li", {}, make("div", {class: "grow"}, state("ok", {text: "absence proven"}), make("p", {class: "small q", text: `${plural(removals, "removal")}: the listing of the origin was complete, and each object is observed again before its change`}))) : null,
    make("li", {}, make("div", {class: "grow"}, state("ok", {text: "no data is deleted"}), make("p", {class: "small q", text: "Only declarations change. What is stored at a location stays."})))));
}
