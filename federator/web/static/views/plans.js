// Plans: those that wait for a decision, then the newest.
import {get, query} from "../api.js";
import {getElement, make, name} from "../dom.js";
import {ago, counted, plural, state} from "../format.js";
import {empty, freshness, link, more, panel, path, table, tableRow} from "../parts.js";

/** States of a plan that can still be applied. */
export const OPEN = ["ready", "approved", "held"];
const COLUMNS = [["Plan"], ["Mirror"], ["State"], ["Changes", "long"], ["Refused", "long"], ["Made"]];
const HELD = [["Plan"], ["Mirror"], ["Changes", "full"], ["Why it is held", "long"], ["Refused", "full"], ["Made"]];

export const planLink = digest => make("a", {href: path("plans", digest)}, make("bdi", {class: "mono", text: digest.slice(0, 12)}));

export const mirrorLink = mirror => (mirror.startsWith("declare:") ? name(mirror) : link("mirrors", mirror));

/* The number of changes by action that were not carried out. */
export const remaining = plan => Object.fromEntries(Object.entries(plan.changes).map(([action, number]) => [action, number - (plan.done[action] ?? 0)]).filter(([, number]) => number));

/* The sum of counts by action or by reason. */
export const total = counts => Object.values(counts).reduce((sum, number) => sum + number, 0);

/* The changes of a plan; of an open one that was carried out in part, how many were. */
const changesOf = plan => make("span", {}, counted(plan.changes), OPEN.includes(plan.state) && total(plan.done) ? make("span", {class: "q", text: ` (${plural(total(plan.done), "change")} carried out)`}) : null);

const inPart = plan => (plan.partial ? make("span", {class: "q", text: " in part"}) : null);

/* The state of a plan with a number of changes. There is nothing to apply in one without any. */
export const planState = (plan, changes, options = {}) => plan.state === "ready" && !changes ? state("skipped", {...options, text: "no changes"}) : state(plan.state, options);

export const cellsOf = plan => [planLink(plan.digest), mirrorLink(plan.mirror), make("span", {}, planState(plan, total(plan.changes)), inPart(plan)),
  changesOf(plan), counted(plan.refusals), ago(plan.created_at)];

/* Held plans, with all that a decision starts from. */
const heldTable = plans => table(HELD, plans.map(plan => [planLink(plan.digest), mirrorLink(plan.mirror), make("span", {}, changesOf(plan), inPart(plan)), make("div", {}, plan.held.map(text => make("p", {text}))),
  counted(plan.refusals), ago(plan.created_at)]), "Held plans");

/* Plans of one mirror: its name need not be said again. */
export function mirrorPlanTable(plans) {
  const rest = list => list.filter((_, at) => at !== 1);
  return table(rest(COLUMNS), plans.map(plan => rest(cellsOf(plan))), "Plans of the mirror");
}

export async function show({signal}) {
  const [held, all] = await Promise.all([get("/api/v1/plans?state=held&limit=200", signal), get("/api/v1/plans?limit=50", signal)]);
  const list = table(COLUMNS, all.plans.map(cellsOf), "Newest plans"), body = getElement(list, "tbody");
  const following = more(all.next, async cursor => {
    const next = await get(query("/api/v1/plans", {limit: 50, cursor}), signal);
    body.append(...next.plans.map(plan => tableRow(COLUMNS, cellsOf(plan))));
    return next.next;
  });
  return {title: "Plans", nodes: [make("div", {class: "title head"}, make("h1", {tabindex: "-1", text: "Plans"})), make("div", {class: "stack"},
    panel("Waiting for a decision", {}, held.plans.length ? heldTable(held.plans) : empty("Nothing waits", "Plans that need a decision appear here.", {state: "ok"})),
    panel("Newest", {}, all.plans.length ? list : empty("No plan yet", "A mirror's plan appears here."), following)), freshness(all.freshness)]};
}
