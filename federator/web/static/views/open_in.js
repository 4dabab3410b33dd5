// Code that opens the table with each client, as the API makes it. It has no secrets.
import {get, query} from "../api.js";
import {make} from "../dom.js";
import {copyButton, empty, panel} from "../parts.js";

const TITLES = {pylance: "pylance", lancedb: "lancedb", spark: "Spark", duckdb: "DuckDB"};

export function openPanels(id, signal) {
  const holder = make("div", {class: "stack"});
  get(query(`/api/v1/snippets/${encodeURIComponent(id)}`, {uri: location.origin}), signal).then(({snippets, obstacle}) => {
    holder.replaceChildren(...(obstacle ? [panel("Open in", {}, empty("Clients cannot open this table", obstacle, {state: "denied"}))] : snippets.map(snippet => {
      const title = TITLES[snippet.client] ?? snippet.client;
      return panel(title, {note: `needs ${snippet.packages.join(", ")}`, more: copyButton(snippet.code, `code for ${title}`)},
        make("pre", {tabindex: "0", role: "group", "aria-label": `Code for ${title}`}, make("code", {text: snippet.code})));
    })));
  }, error => {
    if (!signal.aborted) holder.replaceChildren(panel("Open in", {}, empty(make("span", {role: "alert", text: error.message}), error.hint, {state: "failed"})));
  });
  return [holder];
}
