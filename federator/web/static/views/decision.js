// The decision about a plan: a comment, approval, rejection, and the application with its result.
import {ApiError, send} from "../api.js";
import {byId, getElement, make, name} from "../dom.js";
import {ago, plural, words} from "../format.js";
import {button, needing, panel} from "../parts.js";
import {announce, attempt, reload} from "../router.js";
import {OPEN} from "./plans.js";
import {followRequest, requestLine} from "./requests.js";

export const REMOVALS = ["deregister_table", "drop_namespace"];

const decide = (row, action, comment) => send("POST", `/api/v1/plans/${row.digest}/${action}`, {comment: comment || null}, row.if_match);

/**
 * The changes that were not carried out.
 * @param {any} row response of /plans/{digest}
 */
export function openChanges(row) {
  const done = new Set(row.outcomes.filter(each => each.state === "done").map(each => each.change));
  return row.plan.changes.filter((_, at) => !done.has(at));
}

/* Request the application, and show what becomes of it until its run has ended. */
async function apply(row, signal) {
  const queued = await send("POST", `/api/v1/plans/${row.digest}/apply`, undefined, row.digest), waiting = queued.waiting.length;
  announce(`Application requested: it starts when the worker is free${waiting ? `; ${plural(waiting, "change")} of it wait for an approval` : ""}`);
  await followApplication(queued, signal);
}

/** The application that is followed. @type {Promise<void> | null} */
let followed = null;

/**
 * Show what becomes of an application, whoever requested it, in place of the decision, until it has ended. One that is followed already stays.
 * @param {any} queued
 * @param {AbortSignal} signal
 */
export async function followApplication(queued, signal) {
  if (!byId("decision").hasAttribute("data-kept")) followed = follow(queued, signal);
  await followed;
}

/* Give the focus to an element in place of one that was disabled or removed. */
function takeFocus(element) {
  element.tabIndex = -1;
  element.focus({preventScroll: true});
}

async function follow(queued, signal) {
  const isHere = document.activeElement === document.body || byId("decision").contains(document.activeElement), line = make("p", {class: "pad", role: "status"});
  const progress = panel("Application", {id: "decision", note: make("span", {}, `${queued.kind === "sync" ? "by a sync, " : ""}requested by `, name(queued.actor))}, line);
  progress.toggleAttribute("data-kept", true);
  byId("decision").replaceWith(progress);
  if (isHere) takeFocus(progress);
  const show = (request, run) => line.replaceChildren(...requestLine(request, run).filter(Boolean));
  const {request, run} = await followRequest(queued, show, signal);
  progress.removeAttribute("data-kept");
  const isStill = progress.contains(document.activeElement);
  await reload();
  signal.throwIfAborted();
  byId("result").replaceChildren(panel("Result", {}, make("p", {class: "pad"}, requestLine(request, run))));
  if (isStill) takeFocus(byId("result"));
}

/* Apply what needs no decision. A comment that was typed is kept for the decision about the rest. */
async function applyOthers(row, typed, signal) {
  await apply(row, signal);
  const field = document.getElementById("comment");
  if (field instanceof HTMLTextAreaElement && !field.value) field.value = typed;
}

function form(row, field, signal) {
  const left = openChanges(row), removals = left.filter(change => REMOVALS.includes(change.action)).length, effect = removals ? ` (${plural(removals, "removal")})` : "";
  const hasChanges = row.plan.changes.length > 0, isHeld = row.state === "held", needsCommand = (row.plan.holds ?? []).some(hold => hold.command);
  // One decision at a time. What the plan has become meanwhile may be why the service refuses one: it is shown with the refusal.
  const act = (text, run, kind, shape) => needing("operator", button(text, () => attempt(async () => {
    for (const each of buttons) each.disabled = true;
    try {
      await run();
    } catch (error) {
      if (error instanceof ApiError) await reload();
      throw error;
    } finally {
      for (const each of buttons) each.disabled = false;
      if (document.activeElement === document.body) takeFocus(getElement(document, "main h1"));
    }
  }), {kind, shape}));
  const said = action => decide(row, action, field.value.trim());
  // A decision about a held plan is explained to those who read the audit log.
  const explained = run => async () => {
    if (!isHeld || field.checkValidity()) return run();
    field.focus();
    throw new Error("A decision about a held plan needs a comment");
  };
  const decided = (action, message) => explained(async () => {
    await said(action);
    field.value = "";
    await reload();
    announce(message);
  });
  const [approve, approveOnly] = isHeld && hasChanges && !needsCommand ? [act(`Approve and apply${effect}`, explained(async () => {
    await said("approve");
    field.value = "";
    await apply(row, signal);
  }), "main wide", "run"), act("Approve only", decided("approve", "Approved"), "wide", "ok")] : [];
  const some = row.waiting.length > 0 && row.waiting.length < left.length;
  const applies = isHeld ? some && act("Apply the others", () => applyOthers(row, field.value, signal), "wide", "run") : hasChanges && act(`Apply${effect}`, () => apply(row, signal), "main wide", "run");
  const reject = act("Reject", decided("reject", "Rejected"), "danger wide", "stop"), buttons = [approve, applies, approveOnly, reject].filter(each => each instanceof HTMLButtonElement);
  return [approve, applies, approveOnly ? make("div", {class: "pair"}, approveOnly, reject) : reject];
}

const decidedBy = row => (row.decided_by ? make("p", {}, `${words(row.state)} by `, name(row.decided_by), " ", ago(row.decided_at)) : null);
const comment = row => (row.decision_comment ? make("blockquote", {}, make("bdi", {text: row.decision_comment})) : null);

/**
 * The panel of the decision, and the place of its result.
 * @param {any} row response of /plans/{digest}
 * @param {AbortSignal} signal
 */
export function decision(row, signal) {
  const result = make("div", {id: "result", "data-kept": true});
  if (row.partial) return [panel("Decision", {}, make("p", {class: "pad", text: "You see a part of this plan. A principal whose scopes cover all of it decides."})), result];
  if (!OPEN.includes(row.state)) {
    return [row.decided_by ? panel("Decision", {}, make("div", {class: "pad stack"}, decidedBy(row), comment(row))) : null, result];
  }
  if (row.application) return [panel("Application", {id: "decision"}, make("p", {class: "pad", role: "status"}, requestLine(row.application, null))), result];
  const field = make("textarea", {id: "comment", maxlength: 2000, rows: 2, required: row.state === "held"});
  const commands = (row.plan.holds ?? []).map(hold => hold.command).filter(Boolean);
  return [panel("Decision", {id: "decision"}, make("div", {class: "pad stack"}, decidedBy(row), comment(row),
    commands.length && row.state === "held" ? make("p", {}, "It can be approved after: ", make("code", {text: commands.join("; ")})) : null,
    make("label", {for: "comment"}, make("span", {class: "q2", text: row.state === "held" ? "Comment, kept in the audit log (required to approve or reject)" : "Comment on a rejection, kept in the audit log"}), field), form(row, field, signal),
    make("p", {class: "q small", text: `You decide on ${row.digest.slice(0, 12)} as it is shown. Each object is observed again directly before its change, and a change whose objects have moved is skipped.`}))), result];
}
