// The search: results while one types, why each was found, and facets that narrow it.
import {ApiError, get, query} from "../api.js";
import {highlight, icon, make, name, parentId, trail} from "../dom.js";
import {ago, count, plural, state} from "../format.js";
import {empty, freshness, more, note, panel, path, UI} from "../parts.js";
import {setQueryInPlace} from "../router.js";

const WAIT = 150;
const FACETS = {source: "Source", namespace: "Namespace", state: "State", owner: "Owner"};
const HELP = "Words, prefixes (ord*), globs (sales$*), and fields: name:, namespace:, property:key=value, column:, location:, owner:, source:, state:. A minus or NOT before a term leaves its tables out.";
const SHOWN = ["name", "namespace", "location"];
const FIELD_TERM = /(?<=^|\s)-?[A-Za-z][A-Za-z_]*:(?:"[^"]*"|\S+)/g;

// A quotation mark ends a term: as a wildcard, or between words, it finds the same.
const term = (field, value) => `${field}:"${value.replaceAll('"', field === "namespace" ? "?" : " ")}"`;

/* The query without one of its terms. */
const without = (text, token) => text.replace(FIELD_TERM, each => (each === token ? "" : each)).trim();

const tables = number => `${number} ${number === "1" ? "table" : "tables"}`;

// The marks of mirrors name the origin of each copy: they tell nothing where something else matches, too.
const isMark = part => part.field === "property" && part.key?.startsWith("federator.");

export function hit(node) {
  const {stored} = node, all = node.match?.parts ?? [], parts = all.every(isMark) ? all : all.filter(part => !isMark(part)), of = field => parts.filter(part => part.field === field);
  const levels = Object.fromEntries(of("namespace").map(part => [part.key, part.ranges])), location = of("location")[0];
  const others = parts.filter(part => !SHOWN.includes(part.field)).slice(0, 4);
  return make("li", {class: "hit"}, make("div", {class: "name"}, icon("table"), make("a", {href: path("t", node.id)}, name(node.name, {ranges: of("name")[0]?.ranges ?? []}))),
    make("div", {class: "where"}, trail(parentId(node.id), levels), node.location ? name(node.location, {mono: true, ranges: location?.text === node.location ? location.ranges : []}) : null),
    others.length ? make("div", {class: "why"}, others.map(part => make("span", {}, make("small", {text: part.key === null ? `${part.field} ` : "property "}),
      part.key === null ? null : make("bdi", {text: `${part.key} = `}), highlight(part.text, part.ranges)))) : null,
    make("div", {class: "facts"}, state(node.verified ?? "unverified"), stored ? make("small", {}, stored.rows === null ? null : plural(stored.rows, "row"), stored.rows !== null && stored.written_at ? ", " : null,
      stored.written_at ? ["written ", ago(stored.written_at)] : null) : null));
}

/* What narrows the search: its terms with a field, each with a button that removes it. */
function tokens(text, search) {
  const found = text.match(FIELD_TERM) ?? [];
  return found.length ? make("div", {class: "chips", role: "group", "aria-label": "Fields of the query"}, found.map(token => make("span", {class: "token"},
    make("bdi", {class: "long", text: token}), make("button", {type: "button", "aria-label": `Remove ${token}`, title: "Remove", onclick: () => search(without(text, token)), text: "×"})))) : null;
}

function facetChips(facets, text, search) {
  const blocks = Object.entries(FACETS).filter(([field]) => facets[field].length).flatMap(([field, title]) => [make("dt", {text: title}),
    make("dd", {}, make("div", {class: "chips", role: "group", "aria-label": title}, facets[field].map(({value, count: number}) => {
      const added = term(field, value), chosen = (text.match(FIELD_TERM) ?? []).includes(added);
      const choose = event => search(chosen ? without(text, added) : `${text} ${event.altKey ? "-" : ""}${added}`.trim());
      return make("button", {type: "button", class: "chip", "aria-pressed": String(chosen), "data-term": added, title: `${value} (Alt: exclude)`, onclick: choose},
        make("bdi", {class: "long", text: value}), make("small", {text: facets.exact ? count(number) : `≥ ${count(number)}`}));
    })))]);
  return make("dl", {class: "facets"}, blocks);
}

const suggestions = page => page.did_you_mean.flatMap((text, at) => [at ? ", " : "", make("a", {href: `${UI}/search?${new URLSearchParams({q: text})}`}, make("bdi", {text}))]);

/* The results as nodes, and their number as a text. */
async function results(text, search, signal) {
  const page = await get(query("/api/v1/search", {q: text, facets: true, limit: 50}), signal);
  const meant = page.did_you_mean.length ? make("p", {class: "meant"}, "Did you mean ", suggestions(page), "?") : null;
  if (!page.nodes.length) return {number: "No table", nodes: [empty(make("span", {}, "No table matches ", make("q", {text})), null, {action: meant}), freshness(page.freshness)]};
  const amount = `${page.total.exact ? "" : "more than "}${count(page.total.count)}`, number = tables(amount), similar = page.nodes[0].match.kind === "typo";
  const list = make("ul", {"aria-label": "Tables"}, page.nodes.map(hit));
  const following = more(page.next, async cursor => {
    const next = await get(query("/api/v1/search", {q: text, limit: 50, cursor}), signal);
    list.append(...next.nodes.map(hit));
    return next.next;
  });
  return {number, nodes: [similar ? note("warn", make("p", {}, "No table has these words. The tables below have similar names.")) : null, meant, facetChips(page.facets, text, search),
    page.capped ? note("warn", "Too many tables match equally well, and some are left out. Add a term.") : null, panel("Tables", {note: amount}, list, following), freshness(page.freshness)]};
}

export async function show({query: given, signal}) {
  const first = given.get("q") ?? "";
  const input = make("input", {type: "search", id: "q", name: "q", value: first, maxlength: 1000, autocomplete: "off", placeholder: "orders namespace:sales column:price", "aria-label": "Search tables"});
  const form = make("form", {role: "search", class: "bigfind"}, icon("search"), input, make("button", {class: "btn main", text: "Search"}));
  const below = make("div", {}), status = make("p", {class: "only-listeners", role: "status"});
  let running = new AbortController(), typing = 0, shown = null;
  signal.addEventListener("abort", () => { clearTimeout(typing); running.abort(); });

  /* Show the results of a text. `replace`: it is still being typed. */
  async function search(text, {replace = false, address = true} = {}) {
    clearTimeout(typing);
    running.abort();
    running = new AbortController();
    const mine = running.signal, chip = /** @type {HTMLElement | null} */ (document.activeElement)?.dataset.term;
    if (input.value.trim() !== text) input.value = text;
    if (address && text !== shown) setQueryInPlace({q: text}, {replace});
    shown = text;
    document.title = `${text ? `Search: ${text}` : "Search"} · Lance Federator`;
    /** @type {any[]} */
    let nodes = [make("p", {class: "q", text: HELP})];
    let number = "";
    input.removeAttribute("aria-invalid");
    input.removeAttribute("aria-describedby");
    try {
      if (text) ({nodes, number} = await results(text, search, mine));
    } catch (error) {
      if (mine.aborted || error.name === "AbortError") return;
      // A query that is not understood is explained beside the input. Other errors of the first view are the router's.
      const invalid = error instanceof ApiError && error.status === 400;
      if (!invalid && !address) throw error;
      if (invalid) input.setAttribute("aria-invalid", "true");
      input.setAttribute("aria-describedby", "q-error");
      nodes = [make("div", {id: "q-error", role: "alert"}, note("bad", make("p", {text: error.message}), error.hint ? make("p", {class: "q small", text: error.hint}) : null))];
    }
    if (mine.aborted) return;
    below.replaceChildren(...[tokens(text, search), ...nodes].filter(Boolean));
    status.textContent = number;
    const again = /** @type {HTMLElement | null} */ (chip ? below.querySelector(`[data-term="${CSS.escape(chip)}"]`) : null);
    if (chip) (again ?? input).focus();
  }

  form.addEventListener("submit", event => {
    event.preventDefault();
    const text = input.value.trim(), link = /** @type {HTMLElement | null} */ (below.querySelector(".hit a"));
    // The results of what was typed are there: go to the first.
    if (text === shown && link) link.focus();
    else search(text);
  });
  input.addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(() => search(input.value.trim(), {replace: true}), WAIT);
  });
  await search(first, {address: false});
  return {title: first ? `Search: ${first}` : "Search", crumbs: [make("span", {text: "Search"})], nodes: [make("div", {class: "title head"}, make("h1", {tabindex: "-1", text: "Search"})), form, status, below],
    after: () => { if (!first || input.hasAttribute("aria-invalid")) input.focus(); }};
}
