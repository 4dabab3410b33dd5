"use strict";
// Plans, and what a person decides about one that is held.

const counted = counts => Object.entries(counts).map(([name, count]) => `${count} ${name.replaceAll("_", " ")}`).join(", ") || "none";

views.plans = async () => {
  const [held, all, mirrors] = await Promise.all([ask("/api/v1/plans?state=held"), ask("/api/v1/plans?limit=50"), ask("/api/v1/mirrors")]);
  const columns = [["Plan"], ["Mirror"], ["State"], ["Changes", "long"], ["Left as it is", "long"], ["Made"]];
  const rows = plans => plans.map(plan => [link("plan", plan.digest, plan.digest.slice(0, 12)), plan.mirror, make("span", {}, state(plan.state), plan.partial ? make("span", {class: "note quiet", text: "in part"}) : ""), counted(plan.changes), counted(plan.refusals), ago(plan.created_at)]);
  const stand = mirrors.mirrors.map(mirror => [mirror.name, `${mirror.from} → ${mirror.to}`, state(mirror.state), mirror.tables, mirror.paused ? "paused" : mirror.schedule || "by hand",
    mirror.last_run ? link("run", mirror.last_run.id, mirror.last_run.state) : ""]);
  view.append(make("h2", {text: "Plans"}),
    section("Waiting for a decision", held.plans.length ? table(columns, rows(held.plans), "Held plans") : make("p", {class: "quiet", text: "Nothing waits."})),
    section("Mirrors", stand.length ? table([["Mirror"], ["From, to"], ["State"], ["Tables", "n"], ["Schedule"], ["Last run"]], stand, "Mirrors") : make("p", {class: "quiet", text: "No mirror is configured."})),
    section("Newest", all.plans.length ? table(columns, rows(all.plans), "Newest plans") : make("p", {class: "quiet", text: "No plan was made yet."})), freshness(all.freshness));
};

// Lines of a plan that the page shows; the API has all of them.
const SHOWN = 500;

function named(line) {
  const id = line.target_path ? `${line.target_source}$${line.target_path}` : "";
  const moved = line.before && line.after && line.before.location !== line.after.location ? ` (${line.before.location} → ${line.after.location})` : "";
  return make("span", {text: (id || line.origin_path) + moved});
}

const rest = lines => lines.length > SHOWN ? make("p", {class: "quiet", text: `and ${lines.length - SHOWN} more`}) : "";

// `shown` is the digest of what the page shows: the decision is refused if it is about anything else.
function decide(digest, what, shown) {
  return loud(ask(`/api/v1/plans/${digest}/${what}`, {method: "POST", headers: {"if-match": `"${shown}"`}}).then(async asked => {
    await route();
    const waiting = what === "apply" && asked.waiting.length ? `; ${asked.waiting.length} of its changes wait for an approval` : "";
    say({approve: "approved", reject: "rejected", apply: "asked the worker to apply it"}[what] + waiting, "ok");
  }));
}

views.plan = async digest => {
  const row = await ask(`/api/v1/plans/${encodeURIComponent(digest)}`), plan = row.plan;
  const button = (what, text, how) => make("button", {type: "button", class: how, text, onclick: () => decide(digest, what, what === "apply" ? digest : row.guarded || digest)});
  const waits = new Map(row.waiting.map(each => [each.change, each.held_by]));
  const some = waits.size && waits.size < plan.changes.length;
  const choices = {held: [button("approve", "Approve", "main"), some ? button("apply", "Apply the others") : "", button("reject", "Reject", "danger")], ready: [button("apply", "Apply", "main"), button("reject", "Reject", "danger")],
    approved: [button("apply", "Apply", "main"), button("reject", "Reject", "danger")]}[row.partial ? "" : row.state] || [];
  const goes = number => waits.has(number) ? make("span", {class: "warn", text: `waits: ${waits.get(number).replaceAll("_", " ")}`}) : "goes";
  const changes = plan.changes.slice(0, SHOWN).map((change, number) => [change.action.replaceAll("_", " "), named(change), change.reason || "", ...(waits.size ? [goes(number)] : [])]);
  const refusals = plan.refusals.slice(0, SHOWN).map(refusal => [refusal.reason.replaceAll("_", " "), named(refusal), refusal.detail || ""]);
  view.append(make("h2", {text: `Plan ${digest.slice(0, 12)}`}), pairs([["mirror", row.mirror], ["state", state(row.state)], ["made", ago(row.created_at)], ["run", link("run", row.run_id)],
    ["decided", row.decided_by ? `by ${row.decided_by}` : null]]),
    plan.held.length ? section("Held", make("ul", {}, ...plan.held.map(why => make("li", {class: "warn", text: typeof why === "string" ? why : JSON.stringify(why)})))) : "",
    row.partial ? make("p", {class: "quiet", text: "You see the part that is about what you may see; who sees all of it decides."}) : "",
    make("p", {}, ...choices.flatMap(choice => [choice, " "])),
    section("Changes", changes.length ? table([["Action"], ["Target", "long"], ["Why", "long"], ...(waits.size ? [["Now"]] : [])], changes, "Changes") : make("p", {class: "quiet", text: "None."}), rest(plan.changes)),
    section("Left as it is", refusals.length ? table([["Reason"], ["What", "long"], ["Detail", "long"]], refusals, "Refusals") : make("p", {class: "quiet", text: "Nothing."}), rest(plan.refusals)), freshness(row.freshness));
};
