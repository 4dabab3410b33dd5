// The graph of catalogs: from origins over mirrors to targets, as nested lists, with the health of each catalog and the state of each mirror.
import {icon, make, name} from "../dom.js";
import {plural, state} from "../format.js";
import {crawledAgo, link, panel, path} from "../parts.js";
import {flow, via} from "./flow.js";
import {sourceState} from "./sources.js";

function card(name_, source, again) {
  return make("a", {class: "card", href: path("t", name_)}, make("div", {}, icon("source"), make("strong", {}, name(name_))),
    make("small", {}, source ? sourceState(source) : state("never", {text: "not crawled"}), again ? "shown above" : source?.freshness.crawled_at ? make("span", {}, "crawled ", crawledAgo(source.freshness, source.overdue_since)) : null));
}

/* Sources that no mirror writes to come first; what is left then is part of a ring, which begins at its first mirror. */
function roots(mirrors) {
  const targets = new Set(mirrors.map(mirror => mirror.to)), origins = [...new Set(mirrors.map(mirror => mirror.from))];
  return [...origins.filter(source => !targets.has(source)), ...origins.filter(source => targets.has(source))];
}

/**
 * @param {any[]} mirrors
 * @param {(mirror: any) => any} syncState
 * @param {Map<string, any>} sources those of the overview, by name
 */
export function catalogGraph(mirrors, syncState, sources) {
  const drawn = new Set();
  const branch = source => {
    const again = drawn.has(source);
    drawn.add(source);
    const below = again ? [] : mirrors.filter(mirror => mirror.from === source);
    const items = below.map(mirror => make("li", {}, via([icon("mirror", {label: "by mirror"}), link("mirrors", mirror.name)], syncState(mirror)), branch(mirror.to)));
    return [card(source, sources.get(source), again), items.length ? make("ul", {}, items) : null];
  };
  const items = roots(mirrors).map(source => (drawn.has(source) ? null : make("li", {}, branch(source))));
  const text = `${plural(mirrors.length, "mirror")} between ${plural(drawn.size, "catalog")}`;
  return panel("Catalogs", {note: text}, flow("Catalogs", "From origins to targets", text, items));
}
