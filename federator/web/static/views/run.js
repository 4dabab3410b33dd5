// One run, followed while it is active.
import {find, follow, get, send} from "../api.js";
import {make, makeSvg, name} from "../dom.js";
import {ago, count, counted, exact, plural, state, toneOf, words} from "../format.js";
import {button, empty, figures, freshness, link, needing, note, panel, table} from "../parts.js";
import {announce, attempt} from "../router.js";
import {planLink} from "./plans.js";
import {took} from "./runs.js";

const SOURCES = [["Source"], ["State"], ["Tables", "n"], ["Added", "n"], ["Changed", "n"], ["Removed", "n"], ["Note", "long"]];
const CHANGES = [["Action"], ["Target", "name"], ["State"], ["Detail", "long"]];

const change = line => [words(line.action), link("t", line.target_path ? `${line.target_source}$${line.target_path}` : line.target_source), state(line.state), line.message];

const STAGES = [["Stage"], ["Of", "name"], ["State"], ["Time", "time drop"], ["Took", "n"], ["Calls", "n"], ["Errors", "n"], ["Detail", "long"]];

const keyOf = stage => JSON.stringify([stage.stage, stage.subject]);

/* How long a stage took, beside what is usual for it. More than twice as long, by at least 10 s, is worth a look. */
function durationOf(seconds, usual) {
  if (usual === undefined || usual === null) return exact(seconds);
  const text = make("small", {class: "q lacking", text: `usually ${exact(usual)}`});
  return make("span", {}, seconds > 2 * usual && seconds > usual + 10 ? state("warn", {text: exact(seconds)}) : exact(seconds), text);
}

/* The stages on one time axis: a bar starts and ends where its stage did. A stage that runs reaches to now. */
function stagePanel(run, usual) {
  if (!run.stages.length) return null;
  const start = Date.parse(run.started_at), now = run.finished_at ? Date.parse(run.finished_at) : Date.now(), whole = Math.max(1, now - start);
  const cells = run.stages.map(stage => {
    const from = Date.parse(stage.started_at), to = stage.finished_at ? Date.parse(stage.finished_at) : Math.max(now, from);
    const tone = toneOf(stage.state), x = 100 * (from - start) / whole, width = Math.max(.8, 100 * (to - from) / whole);
    const text = `starts after ${exact((from - start) / 1000)}, takes ${exact((to - from) / 1000)}`;
    return [words(stage.stage), name(stage.subject), state(stage.state), makeSvg("svg", {class: "gantt", role: "img", "aria-label": text}, makeSvg("title", {text}),
      makeSvg("rect", {class: `f-${tone === "run" ? "accent" : tone}`, x: `${Math.min(99.2, x).toFixed(2)}%`, y: "4", height: "8", width: `${width.toFixed(2)}%`})),
    durationOf((to - from) / 1000, usual.get(keyOf(stage))), stage.calls === null ? null : count(stage.calls), stage.errors === null ? null : stage.errors ? state("failed", {text: count(stage.errors)}) : "0", stage.detail];
  });
  return panel("Stages", {note: `${exact(whole / 1000)}${run.finished_at ? "" : " so far"}`}, table(STAGES, cells, "Stages of the run"));
}

function content(run, usual) {
  const sources = run.sources.map(part => [link("t", part.source), state(part.state), count(part.tables), count(part.added), count(part.changed), count(part.removed),
    [part.failed_namespaces ? `${plural(part.failed_namespaces, "namespace")} not read` : "", part.message].filter(Boolean).join(": ")]), shown = sources.some(cells => cells[cells.length - 1]) ? SOURCES : SOURCES.slice(0, -1);
  const writes = run.writes && Object.keys(run.writes).length ? counted(run.writes) : null;
  return [run.error ? note("bad", make("strong", {text: "Error: "}), run.error) : null,
    figures([["By", make("span", {}, name(run.actor), make("small", {text: ` ${run.trigger}`}))], ["Started", ago(run.started_at)], ["Took", took(run)], ["Writes", writes]]),
    run.progress && !run.stages.length ? make("pre", {text: run.progress, tabindex: "0"}) : null, stagePanel(run, usual),
    sources.length ? panel("Sources", {}, table(shown, sources.map(each => each.slice(0, shown.length)), "Sources of the run")) : null].filter(part => part !== null);
}

/* Say what a cancellation does before it is requested. */
function confirmCancel(kind, cancel) {
  const dialog = make("dialog", {"aria-labelledby": "cancel-title", onclose: () => { dialog.remove(); if (dialog.returnValue) cancel(); }}, make("form", {class: "pad stack", method: "dialog"},
    make("h2", {class: "big", id: "cancel-title", text: `Cancel the ${words(kind)}?`}),
    make("p", {text: "It stops before its next write. What it has written stays, and a write in progress ends. What it has read and not published is left out."}),
    make("div", {class: "ends"}, make("button", {class: "btn", value: "", text: "Let it run"}), make("button", {class: "btn danger", value: "cancel", text: "Cancel the run"}))));
  document.body.append(dialog);
  dialog.showModal();
}

export async function show({argument: id, signal}) {
  const key = encodeURIComponent(id), run = await get(`/api/v1/runs/${key}`, signal);
  // Events do not have the usual durations: a stage that appears later is read with the run.
  const usual = new Map(), learn = stages => { for (const stage of stages) usual.set(keyOf(stage), stage.usual_seconds); };
  learn(run.stages);
  const into = make("div", {id: "run", class: "stack"}, content(run, usual)), writes = make("div", {class: "stack"});
  const badge = make("span", {}, state(run.state, {tag: true}));
  const cancel = needing("operator", button("Cancel", () => confirmCancel(run.kind, () => attempt(async () => {
    await send("POST", `/api/v1/runs/${key}/cancel`);
    announce("Cancellation requested: the run stops before its next write.");
  })), {kind: "danger", shape: "stop", hidden: run.state !== "running"}));
  const showWrites = async () => {
    const [whole, plans] = await Promise.all([get(`/api/v1/runs/${key}`, signal), find(`/api/v1/plans?run=${key}`, signal)]);
    const lines = whole.changes.map(change);
    writes.replaceChildren(...[plans?.plans.length ? panel("Plans", {}, table([["Plan"], ["Mirror"], ["State"], ["Changes", "long"]],
      plans.plans.map(plan => [planLink(plan.digest), make("bdi", {text: plan.mirror}), state(plan.state), counted(plan.changes)]), "Plans of the run")) : null,
    lines.length ? panel("Writes", {note: lines.length === 1000 ? "the first 1,000" : count(lines.length)}, table(CHANGES, lines, "Writes")) : null].filter(part => part !== null));
  };
  const watch = async () => {
    let ended = run.finished_at !== null;
    while (!ended && !signal.aborted) {
      await follow(`/api/v1/runs/${key}/events`, (type, state_) => {
        into.replaceChildren(...content(state_, usual));
        if (state_.stages.some(stage => !usual.has(keyOf(stage)))) {
          for (const stage of state_.stages) usual.set(keyOf(stage), usual.get(keyOf(stage)));
          attempt(async () => learn((await get(`/api/v1/runs/${key}`, signal)).stages));
        }
        badge.replaceChildren(state(state_.state, {tag: true}));
        cancel.hidden = state_.state !== "running";
        ended = type === "end";
      }, signal);
    }
    await showWrites();
  };
  const after = () => { watch().catch(error => { if (error.name !== "AbortError") announce(`The progress of the run cannot be followed: ${error.message}`, "bad"); }); };
  return {title: `Run ${id}`, crumbs: [make("a", {href: "/ui/runs", text: "Runs"}), name(id)], after,
    nodes: [make("div", {class: "title"}, make("h1", {tabindex: "-1"}, `${words(run.kind)} `, name(id, {mono: true})), badge, make("div", {class: "acts"}, cancel)), into, writes, freshness(run.freshness),
      run.sources.length || run.state === "running" ? null : empty("No source was read", null)]};
}
