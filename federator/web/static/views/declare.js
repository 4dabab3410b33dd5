// A table in storage that no catalog declares: request a plan of its declaration, and wait for the plan.
import {get, query, send} from "../api.js";
import {highlight, make} from "../dom.js";
import {counted} from "../format.js";
import {needing, note, panel} from "../parts.js";
import {attempt} from "../router.js";
import {planLink} from "./plans.js";
import {runLink} from "./runs.js";

async function request(body, into, signal) {
  let queued = await send("POST", "/api/v1/declarations", body);
  into.replaceChildren(note("", "Requested. The plan is made when the worker is free."));
  while (["queued", "running"].includes(queued.state)) {
    await new Promise(wake => setTimeout(wake, 1000));
    queued = await get(`/api/v1/requests/${queued.id}`, signal);
  }
  const plans = queued.run_id ? (await get(query("/api/v1/plans", {run: queued.run_id}), signal)).plans : [];
  into.replaceChildren(plans.length ? note("ok", "Planned: ", planLink(plans[0].digest), ` ${counted(plans[0].changes)}`)
    : note("bad", "No plan was made: ", queued.run_id ? make("span", {}, "see the run ", runLink(queued.run_id)) : queued.state));
}

export async function show({query: given, signal}) {
  const locations = given.getAll("location"), sources = (await get("/api/v1/sources", signal)).sources.filter(source => source.configured);
  const into = make("select", {id: "into"}, sources.map(source => make("option", {value: source.name, text: source.name})));
  const as = make("input", {id: "as", maxlength: 4000, placeholder: "the names of its directories", autocomplete: "off"});
  const submit = needing("writer", make("button", {class: "btn main", text: "Plan the declaration"})), result = make("div", {"aria-live": "polite"});
  const form = make("form", {class: "pad stack"}, make("label", {for: "into"}, make("span", {class: "q2", text: "Into"}), into), locations.length > 1 ? null : make("label", {for: "as"}, make("span", {class: "q2", text: "As (sales$orders)"}), as), submit);
  form.addEventListener("submit", event => {
    event.preventDefault();
    submit.disabled = true;
    attempt(() => request({places: locations, into: [into.value], name: as.value.trim() || null}, result, signal)).finally(() => { submit.disabled = false; });
  });
  return {title: "Declare a table", crumbs: [make("a", {href: "/ui/drift", text: "Drift"}), make("span", {text: "Declare a table"})], nodes: [
    make("div", {class: "title head"}, make("h1", {tabindex: "-1", text: "Declare a table"})), panel(locations.length > 1 ? "Locations" : "Location", {}, make("ul", {class: "pad"}, locations.map(location => make("li", {}, make("code", {}, highlight(location, []))))), form),
    make("p", {class: "q fresh", text: "The worker opens the location and makes a plan. Nothing is written before the plan is applied. No mirror changes a declaration that a user made."}), result]};
}
