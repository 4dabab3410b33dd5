// One object of the tree: a source, a namespace or a table.
import {ApiError, asOf, get} from "../api.js";
import {lastName, make, name, parentId, splitId} from "../dom.js";
import {path} from "../parts.js";
import {showNamespace} from "./namespace.js";
import {showSource} from "./source.js";
import {showTable} from "./table.js";

/* Links to everything above an object, and the object itself. */
function trailOf(id) {
  const above = [];
  for (let parent = parentId(id); parent; parent = parentId(parent)) above.unshift(parent);
  const here = name(lastName(id));
  here.dataset.parent = parentId(id);
  return [...above.map(each => make("a", {href: path("t", each) + (each.includes("$") ? "?kind=namespace" : ""), "data-parent": parentId(each)}, make("bdi", {}, name(lastName(each))))), here];
}

export async function show({argument: id, query, signal}) {
  const view = {title: splitId(id).join(" › "), crumbs: trailOf(id)};
  const isNamespace = query.get("kind") === "namespace";
  if (asOf() && !isNamespace) {
    const {findPastTable, showPastSource, showPastTable} = await import("./past.js"), found = id.includes("$") ? await findPastTable(id, signal) : null;
    return {...view, ...await (found ? showPastTable(found) : id.includes("$") ? showNamespace(id, query, signal) : showPastSource(id, signal))};
  }
  if (!id.includes("$")) return {...view, ...await showSource(id, query, signal)};
  if (isNamespace) return {...view, ...await showNamespace(id, query, signal)};
  try {
    const found = await get(`/api/v1/tables/${encodeURIComponent(id)}`, signal);
    return {...view, ...await showTable(found, query, signal)};
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 404) throw error;
    // Not a table: a namespace, or nothing at all.
    try {
      return {...view, ...await showNamespace(id, query, signal)};
    } catch (other) {
      if (!(other instanceof ApiError) || other.status !== 404) throw other;
      const {showAbsent} = await import("./absent.js");
      return {...view, ...await showAbsent(id, signal)};
    }
  }
}
