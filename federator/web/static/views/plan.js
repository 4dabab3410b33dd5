// One plan: its changes by risk with before and after, what was refused, and the decision.
import {ApiError, get, query} from "../api.js";
import {make, name} from "../dom.js";
import {ago, count, plural, state, words} from "../format.js";
import {attempt} from "../router.js";
import {button, empty, freshness, note, panel, path, staleNote} from "../parts.js";
import {decision, followApplication} from "./decision.js";
import {guardPanel, heldPanel} from "./guards.js";
import {mirrorLink, OPEN, planLink, planState, total} from "./plans.js";
import {preconditionsPanel} from "./preconditions.js";
import {runLink} from "./runs.js";

/** @type {[string, string, string, string][]} */
const GROUPS = [["deregister_table", "Deregister", "del", "−"], ["drop_namespace", "Drop namespaces", "del", "−"], ["recreate_table", "Recreate", "mod", "~"], ["update_table", "Update", "mod", "~"],
  ["adopt", "Adopt", "mod", "~"], ["create_namespace", "Create namespaces", "add", "+"], ["declare_table", "Declare", "add", "+"]];
const SHOWN = 200;
// The length of a digest.
const COMPLETE = 64;
// States of the journal that need more words than their own.
const OUTCOMES = {done: "carried out", intent: "no outcome yet"};

const fieldsOf = record => (record ? {location: record.location, comment: record.doc, owner: record.owner, columns: record.schema && JSON.stringify(record.schema), ...Object.fromEntries(
  Object.entries(record.properties ?? {}).map(([key, value]) => [`property ${key}`, value]))} : {});

/* The fields that a change alters, each with its value before and after. */
function deltas(change) {
  const before = fieldsOf(change.before), after = fieldsOf(change.after), lines = [];
  for (const field of new Set([...Object.keys(before), ...Object.keys(after)])) {
    if (change.before && change.after ? before[field] === after[field] : field !== "location") continue;
    lines.push([field, change.before ? before[field] : undefined, change.after ? after[field] : undefined]);
  }
  return lines;
}

const value = (tag, text) => make(tag, {}, text === null || text === undefined ? make("i", {text: "not set"}) : name(text, {mono: true}));

function delta(line) {
  const [field, before, after] = line;
  const both = before !== undefined && after !== undefined;
  return [make("dt", {text: field}), make("dd", {}, before !== undefined ? value(both ? "del" : "span", before) : null, both ? make("span", {class: "q", "aria-hidden": "true", text: "→"}) : null,
    after !== undefined ? value(both ? "ins" : "span", after) : null)];
}

const targetId = line => (line.target_path ? `${line.target_source}$${line.target_path}` : line.origin_path || line.target_source);

/* What verification last found at the location of a change. */
const stored = content => (content ? make("p", {class: "small stored"}, state(content.state), content.version === null ? null : ` version ${count(content.version)}`,
  content.rows === null ? null : `, ${plural(content.rows, "row")}`, make("span", {class: "q"}, ", verified ", ago(content.checked_at))) : make("p", {class: "small stored"}, state("unverified", {text: "never verified"})));

/* What became of a change that was started: its state, when, and by which run. */
const happened = outcome => make("p", {class: "small outcome"}, state(outcome.state, {text: OUTCOMES[outcome.state]}), make("span", {class: "q"}, " ", ago(outcome.at), ", run ", runLink(outcome.run_id)),
  outcome.message ? make("span", {}, ": ", make("bdi", {text: outcome.message})) : null);

/* Whether a change waits, of a plan of which some wait and others do not. */
const release = wait => (wait ? state("held", {text: `waits: ${words(wait)}`}) : state("ready", {text: "can be applied"}));

/**
 * @param {any} change
 * @param {string[]} group
 * @param {{wait?: string | null, content?: any, outcome?: any}} known wait: the guard that holds it; null: none; undefined: it is not said
 */
function changeItem(change, [, , tone, sign], {wait, content, outcome}) {
  const lines = deltas(change), isTable = Boolean((change.after ?? change.before)?.location);
  return make("li", {class: "delta"}, make("span", {class: `sign ${tone}`, "aria-hidden": "true", text: sign}),
    make("div", {class: "path"}, make("a", {href: path("t", targetId(change))}, name(targetId(change), {mono: true}))),
    wait === undefined || outcome?.state === "done" ? null : release(wait), outcome ? happened(outcome) : null,
    change.reason ? make("p", {text: change.reason}) : null, isTable ? stored(content) : null, lines.length ? make("dl", {}, lines.map(delta)) : null);
}

/* A list that shows 200 items, and 200 more at a time. */
function longList(items, build) {
  const list = make("ul", {}, items.slice(0, SHOWN).map(build));
  let shown = SHOWN;
  const next = button(`Show ${count(Math.min(SHOWN, items.length - shown))} more of ${count(items.length)}`, () => {
    list.append(...items.slice(shown, shown + SHOWN).map(build));
    shown += SHOWN;
    next.hidden = shown >= items.length;
  });
  next.hidden = shown >= items.length;
  return [list, next];
}

function changeGroups(plan, row) {
  const waits = new Map(row.waiting.map(each => [each.change, each.held_by]));
  const contents = new Map(row.contents.map(each => [each.change, each])), outcomes = new Map(row.outcomes.map(each => [each.change, each]));
  return GROUPS.map(group => {
    const changes = plan.changes.map((change, at) => ({change, at})).filter(({change}) => change.action === group[0]);
    if (!changes.length) return null;
    return make("details", {class: "panel group", open: true}, make("summary", {}, group[1], make("span", {class: "q", text: plural(changes.length, "change")})),
      ...longList(changes, ({change, at}) => changeItem(change, group, {wait: waits.size ? waits.get(at) ?? null : undefined, content: contents.get(at), outcome: outcomes.get(at)})));
  }).filter(Boolean);
}

function refusals(plan) {
  if (!plan.refusals.length) return null;
  return make("details", {class: "panel group", open: true}, make("summary", {}, "Refused", make("span", {class: "q", text: `${plural(plan.refusals.length, "difference")} that the mirror leaves alone`})),
    ...longList(plan.refusals, refusal => make("li", {class: "delta"}, make("span", {class: "sign not", "aria-hidden": "true", text: "!"}),
      make("div", {class: "path"}, name(targetId(refusal), {mono: true})), make("span", {class: "tag", text: words(refusal.reason)}), refusal.detail ? make("p", {text: refusal.detail}) : null)));
}

/* A plan by its digest, or by the first characters of it, as messages have them. */
async function readPlan(given, signal) {
  if (given.length >= COMPLETE) return get(`/api/v1/plans/${encodeURIComponent(given)}`, signal);
  const plans = /^[0-9a-f]+$/.test(given) ? (await get(query("/api/v1/plans", {digest: given, limit: 2}), signal)).plans : [];
  if (plans.length === 1) return readPlan(plans[0].digest, signal);
  throw new ApiError(404, {detail: `${plans.length ? "Several plans have" : "No plan has"} a digest that begins with ${given}`,
    hint: plans.length ? "Give more characters of it." : "Perhaps you may not see it."});
}

export async function show({argument, signal}) {
  const row = await readPlan(argument, signal), {plan, digest} = row;
  const groups = changeGroups(plan, row), [newest] = row.state === "outdated" ? (await get(query("/api/v1/plans", {mirror: row.mirror, limit: 1}), signal)).plans : [];
  return {title: `Plan ${digest.slice(0, 12)}`, after: () => { if (row.application) attempt(() => followApplication(row.application, signal)); },
    crumbs: [make("a", {href: "/ui/plans", text: "Plans"}), mirrorLink(row.mirror), make("bdi", {class: "mono", text: digest.slice(0, 8)})],
    nodes: [make("div", {class: "title"}, make("h1", {tabindex: "-1"}, "Plan for ", name(row.mirror)), planState(row, plan.changes.length, {tag: true})),
      make("div", {class: "sub"}, make("bdi", {class: "mono", text: digest.slice(0, 12)}), make("span", {}, "made ", ago(row.created_at)), make("span", {}, "run ", runLink(row.run_id))),
      newest && newest.digest !== digest ? note("warn", "Nothing is decided on this plan any more. The newest one is ", planLink(newest.digest), " ", planState(newest, total(newest.changes))) : null,
      OPEN.includes(row.state) ? staleNote(row.freshness) : null, row.partial ? note("warn", "Only the changes and refusals in your scopes are shown.") : null,
      make("div", {class: "decide"}, make("div", {class: "stack", role: "region", "aria-label": "Changes"}, groups.length ? groups : empty("No changes", null, {state: plan.refusals.length || plan.held.length ? "skipped" : "ok"}), refusals(plan)),
        make("aside", {"aria-label": "Decision"}, heldPanel(row), decision(row, signal), preconditionsPanel(row), guardPanel(plan))), freshness(row.freshness)]};
}
