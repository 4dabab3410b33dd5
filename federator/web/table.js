"use strict";
// One table: what its catalog says, what lies there, who else declares it, why it is here.

function columnsOf(schema, caption) {
  return table([["Column"], ["Type", "long"]], schema.map(column => [column.name, typeof column.type === "string" ? column.type : JSON.stringify(column.type)]), caption);
}

function declarations(place, id) {
  const list = make("ul", {}, ...place.declarations.map(other => make("li", {}, other.id === id ? `${other.id} (this)` : link("table", other.id), make("span", {class: "note quiet", text: other.location}))));
  const apart = place.disagreements.map(one => make("li", {}, make("strong", {text: one.field}), ": ", one.sides.map(side => side.join(", ")).join(" against ")));
  return section("Declarations", list, apart.length ? make("div", {}, make("p", {class: "bad", text: "They disagree on:"}), make("ul", {}, ...apart))
    : make("p", {class: place.declarations.length > 1 ? "ok" : "quiet", text: place.declarations.length > 1 ? "They agree." : "Nobody else declares this place."}));
}

function verification(dataset) {
  if (!dataset) return section("Verification", make("p", {class: "quiet", text: "Its location was never opened."}));
  return section("Verification", pairs([["state", state(dataset.state)], ["note", dataset.message], ["version", dataset.version], ["rows", dataset.rows?.toLocaleString()],
    ["fragments", dataset.fragments], ["opened", ago(dataset.checked_at)], ["through", dataset.checked_through]]),
    dataset.schema ? make("details", {}, make("summary", {text: `${dataset.schema.length} stored columns`}), columnsOf(dataset.schema, "Stored columns")) : null);
}

function explained(found) {
  const parts = found.parts.map(part => make("li", {}, `mirror ${part.mirror} (${part.role}): ${part.next}`, part.other ? make("span", {class: "note"}, link("table", part.other)) : null));
  const events = found.history.map(event => [ago(event.at), event.what, event.detail]);
  return section("Explanation", make("p", {text: found.summary}), parts.length ? make("ul", {}, ...parts) : null,
    events.length ? table([["When"], ["What", "long"], ["Detail", "long"]], events, "History") : null);
}

function mirrored(entries, id) {
  if (!entries.length) return null;
  const rows = entries.map(one => [one.mirror, one.origin === id ? "this" : link("table", one.origin), one.target === id ? "this" : link("table", one.target), ago(one.updated_at)]);
  return section("Mirrored", table([["Mirror"], ["From", "long"], ["To", "long"], ["Since"]], rows, "Mirrored"));
}

views.table = async id => {
  const key = encodeURIComponent(id), found = await ask(`/api/v1/tables/${key}`);
  const [drifted, why] = await Promise.all([ask(query("/api/v1/drift", {about: id})), ask(`/api/v1/explain/${key}`)]);
  const place = found.location ? await ask(`/api/v1/datasets/${encodeURIComponent(found.location)}`) : null;
  const properties = Object.entries(found.properties);
  view.append(make("h2", {text: id}), pairs([["kind", found.kind === "table" ? null : state(found.kind)], ["problem", found.problem], ["location", found.location], ["owner", found.owner],
    ["doc", found.doc], ["native id", found.native_id], ["since revision", found.since_revision]]),
    place ? declarations(place, id) : "", verification(found.dataset), section("Drift", drifted.drift.length ? driftTable(drifted.drift) : make("p", {class: "quiet", text: "None is known."})),
    mirrored(found.mirrored, id) || "", explained(why),
    properties.length ? section("Properties", table([["Property"], ["Value", "long"]], properties, "Properties")) : "",
    found.schema ? section("Columns", columnsOf(found.schema, "Columns")) : "", freshness([found.freshness]));
};
