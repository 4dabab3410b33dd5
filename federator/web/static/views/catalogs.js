// The graph of catalogs: from origins over mirrors to targets, as nested lists, with the health of each catalog and the state of each mirror.
import {icon, make, name} from "../dom.js";
import {ago, plural, state} from "../format.js";
import {link, panel, path} from "../parts.js";

/* The last crawl of each source, as its mirrors know it. */
const freshnessOf = mirrors => new Map(mirrors.flatMap(mirror => mirror.freshness).map(fresh => [fresh.source, fresh]));

function card(source, fresh, again) {
  const health = !fresh ? state("never", {text: "not crawled"}) : fresh.state === "ok" ? state("ok", {text: "fresh"}) : state(fresh.state);
  return make("a", {class: "card", href: path("t", source)}, make("div", {}, icon("source"), make("strong", {}, name(source)), health),
    make("small", {}, again ? "shown above" : fresh?.crawled_at ? make("span", {}, "crawled ", ago(fresh.crawled_at)) : "never crawled"));
}

/* Sources that no mirror writes to come first; what is left then is part of a ring, which begins at its first mirror. */
function roots(mirrors) {
  const targets = new Set(mirrors.map(mirror => mirror.to)), origins = [...new Set(mirrors.map(mirror => mirror.from))];
  return [...origins.filter(source => !targets.has(source)), ...origins.filter(source => targets.has(source))];
}

/**
 * @param {any[]} mirrors
 * @param {(mirror: any) => any} syncState
 */
export function catalogGraph(mirrors, syncState) {
  const fresh = freshnessOf(mirrors), drawn = new Set();
  const branch = source => {
    const again = drawn.has(source);
    drawn.add(source);
    const below = again ? [] : mirrors.filter(mirror => mirror.from === source);
    const items = below.map(mirror => make("li", {}, make("div", {class: "via"}, icon("mirror", {label: "by mirror"}), link("mirrors", mirror.name), syncState(mirror)), branch(mirror.to)));
    return [card(source, fresh.get(source), again), items.length ? make("ul", {}, items) : null];
  };
  const items = roots(mirrors).map(source => (drawn.has(source) ? null : make("li", {}, branch(source))));
  const text = `${plural(mirrors.length, "mirror")} between ${plural(drawn.size, "catalog")}`;
  return panel("Catalogs", {note: text}, make("div", {class: "scroll", tabindex: "0", role: "group", "aria-label": "Catalogs, scrolls sideways"},
    make("ul", {class: "flow", "aria-label": `From origins to targets: ${text}`}, items)));
}
