// Why an object exists or is absent, what each mirror would do with it next, and its history.
import {make} from "../dom.js";
import {ago} from "../format.js";
import {link, panel, rows} from "../parts.js";

export const events = list => make("ol", {class: "rows log"}, list.map(event => make("li", {}, make("span", {class: "sign mod", "aria-hidden": "true", text: "~"}),
  make("div", {class: "what"}, make("span", {}, make("bdi", {text: event.what})), event.detail || event.mirror ? make("small", {}, make("bdi", {text: [event.mirror, event.detail].filter(Boolean).join(": ")})) : null),
  ago(event.at, {suffix: ""}))));

export function explanation(why) {
  const parts = why.parts.map(part => ({state: part.reason ? "held" : part.next.startsWith("nothing") ? "ok" : "pending", title: make("bdi", {text: `${part.mirror}, ${part.role}: ${part.next}`}),
    detail: part.other ? link("t", part.other) : null}));
  const {evidence} = why;
  parts.push({state: evidence.proves ? "ok" : "unverified", title: make("span", {}, `Evidence: the listing of ${evidence.namespace || why.source} is ${evidence.state}`), detail: evidence.proves
    ? "It proves what exists and what is absent." : evidence.reason || "It proves nothing."});
  return panel("Explanation", {}, make("p", {class: "pad"}, make("bdi", {text: why.summary})), rows(parts));
}
