"use strict";
// The search, with facets that narrow it.

// A quotation mark ends a term: as a wildcard, or parting words, it finds the same.
const quoted = (name, value) => `${name}:"${value.replaceAll('"', name === "namespace" ? "?" : " ")}"`;
const FACETS = {source: "Source", namespace: "Namespace", state: "State", owner: "Owner"};

function facetList(facets, text) {
  const blocks = Object.entries(FACETS).filter(([name]) => facets[name].length).map(([name, title]) => section(title,
    make("div", {class: "facet"}, ...facets[name].map(({value, count}) => make("a", {href: "#/search/" + encodeURIComponent(`${text} ${quoted(name, value)}`)},
      make("span", {text: value}), make("span", {class: "quiet", text: facets.exact ? count : `${count}+`}))))));
  return make("aside", {"aria-label": "Narrow the search"}, ...blocks);
}

function foundRows(page) {
  return page.nodes.map(node => [link("table", node.id), state(node.verified || "unverified"), node.location]);
}

views.search = async (text = "") => {
  const input = make("input", {type: "search", id: "q", name: "q", value: text, maxlength: 1000, autocomplete: "off", placeholder: "orders namespace:sales column:price"});
  const form = make("form", {role: "search"}, make("label", {for: "q", text: "Words, beginnings (ord*), globs (sales$*), fields (column:price, owner:ann, state:missing)"}), input,
    make("button", {class: "main", text: "Search"}));
  form.addEventListener("submit", event => {
    event.preventDefault();
    location.hash = "#/search/" + encodeURIComponent(input.value.trim());
  });
  const result = make("div", {"aria-live": "polite"});
  view.append(make("h2", {text: "Search"}), form, result);
  if (!text) { input.focus(); return; }
  const page = await ask(query("/api/v1/search", {q: text, facets: true, limit: 50}));
  if (!page.nodes.length) { result.append(make("p", {text: "Nothing matches. Words match whole: ord* finds what begins with ord."})); return; }
  const columns = [["Table", "long"], ["State"], ["Location", "long"]];
  const list = table(columns, foundRows(page), "Tables found"), rows = list.querySelector("tbody");
  const count = page.facets.exact ? page.facets.counted : `at least ${page.facets.counted}`;
  const left = make("div", {}, make("p", {text: `${count} ${count === 1 ? "table" : "tables"}`}), list);
  const show = cursor => more(cursor, async (at, button) => {
    const following = await ask(query("/api/v1/search", {q: text, limit: 50, cursor: at}));
    rows.append(...table(columns, foundRows(following), "").querySelectorAll("tbody tr"));
    button.replaceWith(show(following.next) || "");
  });
  left.append(show(page.next) || "", freshness(page.freshness));
  result.append(make("div", {class: "found"}, left, facetList(page.facets, text)));
};
