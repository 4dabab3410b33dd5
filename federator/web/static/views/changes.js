// Differences between two snapshots.
import {get, query} from "../api.js";
import {make, name, parentId, trail} from "../dom.js";
import {ago, count, words} from "../format.js";
import {empty, freshness, locationParts, more, objectParts, panel, path, UI} from "../parts.js";
import {setQuery} from "../router.js";

const SIGNS = {added: ["add", "+"], removed: ["del", "−"], changed: ["mod", "~"], verified: ["not", "!"]};
/** @type {[string, string][]} */
const KINDS = [["", "all"], ["added", "added"], ["changed", "changed"], ["removed", "removed"]];
const PERIODS = [["-1h", "hour"], ["-1d", "day"], ["-7d", "week"], ["-30d", "30 days"]];

const isStored = item => item.kind === "dataset";

/* A difference as a row. `short`: where it is stands above the row. */
export const changeRow = (item, short = false) => {
  // A difference of what is stored is about a location, not about an object.
  const how = isStored(item) ? "verified" : item.how, [tone, sign] = SIGNS[how], [shown, above] = isStored(item) ? locationParts(item.id) : objectParts(item.id), where = short ? null : above;
  const href = isStored(item) ? path("datasets", item.id) : path("t", item.id) + (item.kind === "namespace" ? "?kind=namespace" : "");
  const fields = item.fields.slice(0, 4).map(field => `${field.field}: ${field.before ?? "not set"} → ${field.after ?? "not set"}`).join("; ");
  const by = item.by ? `by ${item.by.mirror}${item.by.actor ? ` (${item.by.actor})` : ""}` : isStored(item) ? "found by verification" : "made elsewhere";
  return make("li", {}, make("span", {class: `sign ${tone}`, role: "img", "aria-label": words(how), text: sign}),
    make("div", {class: "what"}, make("a", {href, title: item.id, "aria-label": item.id}, name(shown)), make("small", {}, where, where ? " · " : null, [short && item.kind === "namespace" ? "namespace" : null, fields, by].filter(Boolean).join(" · "))),
    item.at ? ago(item.at, {suffix: ""}) : null);
};

/* A list of differences below the namespace, or the directory, that each is in; and what adds further ones to it. A namespace stands below its own name. */
function groupedList() {
  const list = make("ul", {class: "groups", "aria-label": "Changes"});
  let last = "", rows = make("ol");
  return {list, add: differences => {
    for (const item of differences) {
      const above = isStored(item) ? item.id.replace(/[^/]*\/*$/, "") : item.kind === "namespace" ? item.id : parentId(item.id);
      if (above !== last || !list.hasChildNodes()) {
        rows = make("ol", {class: "rows log"});
        list.append(make("li", {}, make("h3", {}, isStored(item) ? name(above, {mono: true}) : above ? trail(above) : "Sources"), rows));
      }
      last = above;
      rows.append(changeRow(item, true));
    }
  }};
}

export async function show({query: given, signal}) {
  const filters = {from: given.get("from") ?? "-1d", to: given.get("to"), source: given.get("source"), kind: given.get("kind"), path: given.get("path")};
  const chips = make("div", {class: "chips bar", role: "group", "aria-label": "Period"}, PERIODS.map(([from, text]) => make("button", {type: "button", class: "chip", "aria-pressed": String(filters.from === from),
    onclick: () => setQuery({from, to: ""}), text: `last ${text}`})));
  // The overview, which shows changes too, does not need the sliders.
  const [{listMoments, timeSlider}, {chips: kinds, choice, entry}] = await Promise.all([import("./time_slider.js"), import("./filters.js")]);
  const [page, moments, {sources}] = await Promise.all([get(query("/api/v1/diff", {...filters, limit: 100}), signal), listMoments(signal), get("/api/v1/sources", signal)]), {list, add} = groupedList();
  add(page.differences);
  const following = more(page.next, async cursor => {
    const next = await get(query("/api/v1/diff", {...filters, limit: 100, cursor}), signal);
    add(next.differences);
    return next.next;
  });
  const totals = Object.entries(page.totals).map(([kind, number]) => `${count(number)} ${words(kind)}`).join(", ");
  const bar = make("div", {class: "filters"}, kinds("Kind", KINDS, filters.kind, "kind"), choice("Source", sources.map(source => [source.name, source.name]), filters.source, "source"), entry("At or below, such as lake$sales", filters.path, "path"));
  const none = filters.source || filters.kind || filters.path ? empty("No difference matches", make("a", {href: `${UI}/changes?${new URLSearchParams({from: filters.from, ...filters.to ? {to: filters.to} : {}})}`, text: "Clear the filter"}))
    : empty("No differences in this period", null, {state: "ok"});
  return {title: "Changes", nodes: [make("div", {class: "title head"}, make("h1", {tabindex: "-1", text: "Changes"}), make("p", {class: "q"}, "from ", ago(page.from.at), " to ", filters.to ? ago(page.to.at) : "now")), chips, timeSlider(moments, page, filters.to), bar,
    panel("Differences", {note: totals}, page.differences.length ? list : none, following), freshness(page.freshness)]};
}
