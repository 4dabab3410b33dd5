"use strict";
// The tree: by source, or merged over all of them.

function tableEntry(node) {
  return make("li", {class: "entry"}, link("table", node.id, node.name),
    node.kind === "table" ? null : state(node.kind, "note"), node.verified ? state(node.verified, "note") : null,
    node.message ? make("span", {class: "note quiet", text: node.message}) : null);
}

function mergedEntry(node) {
  if (node.homes.length === 1) return make("li", {class: "entry"}, link("table", node.default, node.name), make("span", {class: "note quiet", text: node.homes[0].source}));
  const homes = node.homes.map(home => make("li", {}, link("table", home.id), make("span", {class: "note quiet", text: home.location || ""}),
    home.id === node.default && node.conflict ? make("span", {class: "note", text: "default"}) : null));
  return make("li", {class: "entry"}, link("table", node.default, node.name),
    node.conflict ? make("span", {class: "note bad", text: "conflict: different places"}) : make("span", {class: "note quiet", text: `${node.homes.length} homes`}),
    make("ul", {}, ...homes));
}

function branch(node, kind) {
  const list = make("ul", {});
  const known = node.freshness ? node.freshness.state : node.coverage;
  const head = make("summary", {}, node.name, known && !["ok", "complete", "carried"].includes(known) ? state(known, "note") : null,
    node.message ? make("span", {class: "note quiet", text: node.message}) : null,
    node.freshness ? make("span", {class: "note quiet"}, "crawled ", ago(node.freshness.crawled_at)) : null);
  const fold = make("details", {}, head, list);
  fold.addEventListener("toggle", () => {
    if (fold.open && !list.childElementCount) loud(fillTree(list, node.id, kind));
  });
  return make("li", {}, fold);
}

async function fillTree(list, path, kind, cursor) {
  const page = await ask(query("/api/v1/tree", {path, view: kind, limit: 200, cursor}));
  for (const node of page.nodes) {
    const holds = ["source", "namespace"].includes(node.kind);
    list.append(holds ? branch(node, kind) : kind === "merged" ? mergedEntry(node) : tableEntry(node));
  }
  if (!list.childElementCount) list.append(make("li", {class: "entry quiet", text: "nothing here"}));
  const next = more(page.next, async (at, button) => { button.parentElement.remove(); await fillTree(list, path, kind, at); });
  if (next) list.append(make("li", {class: "entry"}, next));
  return page;
}

views.tree = async kind => {
  const shown = kind === "merged" ? "merged" : "source";
  const choice = ["source", "merged"].map(each => make("a", {href: `#/tree/${each}`, "aria-current": each === shown ? "true" : null,
    text: each === "source" ? "By source" : "Merged"}));
  const list = make("ul", {class: "plain", id: "tree"});
  view.append(make("h2", {text: "Tree"}), make("nav", {"aria-label": "View"}, ...choice),
    make("p", {class: "quiet", text: shown === "merged" ? "One tree over all sources: what catalogs call the same is one entry." : "Each source with its own levels."}), list);
  const page = await fillTree(list, "", shown);
  if (shown === "merged") list.before(freshness(page.freshness));
};
