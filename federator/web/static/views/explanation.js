// Why an object exists or is absent, what each mirror would do with it next, and its history.
import {make, name} from "../dom.js";
import {ago, words} from "../format.js";
import {link, panel, path, rows} from "../parts.js";

// What a crawl or verification found, and what a mirror wrote.
const SIGNS = {appeared: ["add", "+"], declare_table: ["add", "+"], create_namespace: ["add", "+"], gone: ["del", "−"], deregister_table: ["del", "−"], drop_namespace: ["del", "−"], "verified:": ["not", "!"]};

/* An event in words, with a way to its run. "declare_table ID: done" has the id of the object itself, which need not be said again, or of a copy. */
function eventItem(event, self) {
  const [first] = event.what.split(" ", 1), [, , target = "", outcome = ""] = /^(\S+) (.*\$.*): ([a-z_]+)$/s.exec(event.what) ?? [], valid = event.what === "verified: valid";
  const id = target === self ? "" : target, [tone, sign] = valid ? ["add", "✓"] : SIGNS[first] ?? ["mod", "~"], detail = [event.mirror, event.detail].filter(Boolean).join(": ");
  return make("li", {}, make("span", {class: `sign ${tone}`, "aria-hidden": "true", text: sign}), make("div", {class: "what"}, make(event.run_id ? "a" : "span", event.run_id ? {href: path("runs", event.run_id)} : {}, outcome ? `${words(first)}: ${words(outcome)}` : words(event.what)),
    id || detail ? make("small", {}, detail ? make("bdi", {text: detail}) : null, detail && id ? " · " : null, id ? name(id) : null) : null), ago(event.at, {suffix: ""}));
}

/* Events of an object, by its id. */
export const events = (list, id) => make("ol", {class: "rows log"}, list.map(event => eventItem(event, id)));

export function explanation(why) {
  const parts = why.parts.map(part => ({state: part.reason ? "held" : part.next.startsWith("nothing") ? "ok" : "pending", title: make("bdi", {text: `${part.mirror}, ${part.role}: ${part.next}`}),
    detail: part.other ? link("t", part.other) : null}));
  const {evidence} = why;
  parts.push({state: evidence.proves ? "ok" : "unverified", title: make("span", {}, `Evidence: the listing of ${evidence.namespace || why.source} is ${evidence.state}`), detail: evidence.proves
    ? "It proves what exists and what is absent." : evidence.reason || "It proves nothing."});
  return panel("Explanation", {}, make("p", {class: "pad"}, make("bdi", {text: why.summary})), rows(parts));
}
