// One object of the tree: a source, a namespace or a table.
import {ApiError, get} from "../api.js";
import {icon, lastName, make, name, parentId, splitId} from "../dom.js";
import {path} from "../parts.js";
import {showNamespace} from "./namespace.js";
import {showSource} from "./source.js";
import {showTable} from "./table.js";

/* Links to everything above an object, and the object itself. */
export function trailOf(id) {
  const above = [];
  for (let parent = parentId(id); parent; parent = parentId(parent)) above.unshift(parent);
  return [...above.map(each => make("a", {href: path("t", each) + (each.includes("$") ? "?kind=namespace" : "")}, make("bdi", {}, name(lastName(each))))), name(lastName(id))];
}

export const heading = (shape, id, ...more) => make("div", {class: "title"}, icon(shape), make("h1", {tabindex: "-1"}, name(lastName(id))), ...more);

export async function show({argument: id, query, signal}) {
  const view = {title: splitId(id).join(" › "), crumbs: trailOf(id)};
  if (!id.includes("$")) return {...view, ...await showSource(id, signal)};
  if (query.get("kind") === "namespace") return {...view, ...await showNamespace(id, signal)};
  try {
    const found = await get(`/api/v1/tables/${encodeURIComponent(id)}`, signal);
    return {...view, ...await showTable(found, query, signal)};
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 404) throw error;
    // Not a table: a namespace, or nothing at all, which is then the error of the table.
    try {
      return {...view, ...await showNamespace(id, signal)};
    } catch (other) {
      throw other instanceof ApiError && other.status === 404 ? error : other;
    }
  }
}
