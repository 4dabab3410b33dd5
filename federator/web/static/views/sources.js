// All sources with their freshness, and buttons that request crawls.
import {get, send} from "../api.js";
import {make} from "../dom.js";
import {ago, count, state} from "../format.js";
import {button, empty, link, table} from "../parts.js";
import {announce, attempt} from "../router.js";

/* A button that requests a crawl: of all sources, or as the request's further fields say. */
export const crawlButton = (text, request = {}, kind = "") => button(text, () => attempt(async () => {
  const {id} = await send("POST", "/api/v1/runs", {kind: "crawl", ...request});
  announce(`Crawl requested (request ${id}). It starts when the worker is free.`);
}), {kind, shape: "run"});

const COLUMNS = [["Source"], ["Kind"], ["State"], ["Crawled"], ["Tables", "n"], ["Namespaces", "n"], ["Not read", "n"], ["Schedule"], ["Note", "long"]];

export async function show({signal}) {
  const {sources} = await get("/api/v1/sources", signal);
  const cells = sources.map(source => [link("t", source.name), source.impl, state(source.freshness.state), ago(source.freshness.crawled_at), count(source.tables),
    count(source.namespaces), count(source.failed_namespaces), source.schedule ?? "by hand", source.freshness.message]);
  const body = sources.length ? make("section", {class: "panel"}, table(COLUMNS, cells, "Sources"))
    : empty("No source is configured", "Add one with: federator init");
  return {title: "Sources", nodes: [make("div", {class: "title head"}, make("h1", {tabindex: "-1", text: "Sources"}),
    make("div", {class: "acts"}, crawlButton("Crawl all sources"))), body]};
}
