"use strict";
// The sources with their freshness, and what has drifted.

views[""] = async () => {
  const found = (await ask("/api/v1/sources")).sources;
  const rows = found.map(source => {
    const fresh = source.freshness;
    const short = source.failed_namespaces ? link("source", source.name, source.failed_namespaces) : source.failed_namespaces;
    return [link("source", source.name), source.impl, state(fresh.state), source.tables, source.namespaces, short, fresh.revision, ago(fresh.crawled_at), fresh.message];
  });
  const columns = [["Source"], ["Kind"], ["State"], ["Tables", "n"], ["Namespaces", "n"], ["Not read", "n"], ["Revision", "n"], ["Crawled"], ["Note", "long"]];
  view.append(make("h2", {text: "Sources"}), found.length ? table(columns, rows, "Sources") : make("p", {text: "No source is configured."}));
};

views.source = async name => {
  const key = encodeURIComponent(name);
  const [source, short] = await Promise.all([ask(`/api/v1/sources/${key}`), ask(`/api/v1/sources/${key}/coverage?short=true`).catch(() => null)]);
  const fresh = source.freshness;
  const rows = short ? short.namespaces.map(one => [one.namespace, state(one.presence), state(one.detail), one.presence_reason || one.detail_reason]) : [];
  view.append(make("h2", {text: name}), pairs([["kind", source.impl], ["state", state(fresh.state)], ["note", fresh.message], ["tables", source.tables], ["namespaces", source.namespaces],
    ["revision", fresh.revision], ["crawled", ago(fresh.crawled_at)], ["changed", ago(fresh.published_at)], ["schedule", source.schedule || "by hand"]]),
    section("Namespaces that were not read in full", rows.length ? table([["Namespace", "long"], ["Listed"], ["Described"], ["Why", "long"]], rows, "Not read in full")
      : make("p", {class: "quiet", text: short ? "None: the last crawl read all of them." : "It was never crawled."}), short && short.next ? make("p", {class: "quiet", text: "and more"}) : null));
};

function driftTable(drift) {
  return table([["Severity"], ["What"], ["Table", "long"], ["Differs from", "long"], ["Detail", "long"], ["Since"]], drift.map(one =>
    [state(one.severity), one.kind.replaceAll("_", " "), link("table", one.subject), one.other, one.detail, ago(one.first_seen)]), "Drift");
}

views.drift = async severity => {
  const choose = make("select", {id: "severity", onchange: () => { location.hash = choose.value ? `#/drift/${choose.value}` : "#/drift"; }},
    ...["", "high", "medium", "low"].map(each => make("option", {value: each, text: each || "all", selected: each === (severity || "")})));
  const page = await ask(query("/api/v1/drift", {severity, limit: 100}));
  const list = page.drift.length ? driftTable(page.drift) : make("p", {class: "quiet", text: "Nothing has drifted, as of the last run."});
  const show = cursor => more(cursor, async (at, button) => {
    const following = await ask(query("/api/v1/drift", {severity, limit: 100, cursor: at}));
    list.querySelector("tbody").append(...driftTable(following.drift).querySelectorAll("tbody tr"));
    button.replaceWith(show(following.next) || "");
  });
  view.append(make("h2", {text: "Drift"}), make("form", {}, make("div", {}, make("label", {for: "severity", text: "Severity"}), choose)), list, show(page.next) || "");
};
