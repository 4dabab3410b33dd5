"use strict";
// Runs, and one run as it goes on.

let stream = null;

function closeStream() { if (stream) { stream.close(); stream = null; } }

/* A button that asks for a crawl: of all sources, or as the request's further fields say. */
function crawl(text, wanted = {}) {
  return make("button", {class: "main", type: "button", text, onclick: () => loud(ask("/api/v1/runs", {method: "POST", headers: {"content-type": "application/json"},
    body: JSON.stringify({kind: "crawl", ...wanted})}).then(asked => say(`asked for a crawl, request ${asked.id}: it begins when the worker is free`, "ok")))});
}

views.runs = async () => {
  const start = crawl("Crawl all sources");
  const columns = [["Run"], ["Kind"], ["State"], ["By"], ["Began"], ["Ended"]];
  const rowsOf = page => page.runs.map(run => [link("run", run.id), run.kind, state(run.state), run.actor, ago(run.started_at), run.finished_at ? ago(run.finished_at) : ""]);
  const page = await ask("/api/v1/runs?limit=50"), list = table(columns, rowsOf(page), "Runs");
  const show = cursor => more(cursor, async (at, button) => {
    const following = await ask(query("/api/v1/runs", {limit: 50, cursor: at}));
    list.querySelector("tbody").append(...table(columns, rowsOf(following), "").querySelectorAll("tbody tr"));
    button.replaceWith(show(following.next) || "");
  });
  view.append(make("h2", {text: "Runs"}), make("p", {}, start), page.runs.length ? list : make("p", {text: "There was no run yet."}), show(page.next) || "", freshness(page.freshness));
};

function showRun(run, into) {
  const sources = run.sources.map(one => [one.source, state(one.state), one.tables, one.added, one.changed, one.removed, one.failed_namespaces, one.message]);
  const writes = Object.entries(run.writes).map(([name, count]) => `${count} ${name.replaceAll("_", " ")}`).join(", ");
  into.replaceChildren(pairs([["kind", run.kind], ["state", state(run.state)], ["by", `${run.actor} (${run.trigger})`], ["began", ago(run.started_at)],
    ["ended", run.finished_at ? ago(run.finished_at) : null], ["writes", writes], ["error", run.error]]),
    run.progress ? make("pre", {text: run.progress}) : "",
    sources.length ? section("Sources", table([["Source"], ["State"], ["Tables", "n"], ["Added", "n"], ["Changed", "n"], ["Removed", "n"], ["Not read", "n"], ["Note", "long"]], sources, "Sources")) : "", freshness(run.freshness));
}

views.run = async id => {
  const into = make("div", {"aria-live": "polite", id: "run"}), key = encodeURIComponent(id);
  const cancel = make("button", {class: "danger", type: "button", text: "Cancel", hidden: true, onclick: () => loud(ask(`/api/v1/runs/${key}/cancel`, {method: "POST"}).then(() => say("asked to stop between two writes", "ok")))});
  await ask(`/api/v1/runs/${key}`);
  view.append(make("h2", {text: `Run ${id}`}), into, make("p", {}, cancel));
  stream = new EventSource(`/api/v1/runs/${key}/events`);
  const told = event => {
    const run = JSON.parse(event.data);
    showRun(run, into);
    cancel.hidden = run.state !== "running";
    if (event.type === "end") closeStream();
  };
  stream.addEventListener("progress", told);
  stream.addEventListener("end", told);
};
