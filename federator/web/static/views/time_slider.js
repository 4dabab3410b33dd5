// Two moments on the line of crawls: sliders for the beginning and the end of a period.
import {get, query} from "../api.js";
import {make} from "../dom.js";
import {ago, clock} from "../format.js";
import {setQuery} from "../router.js";

const KINDS = ["crawl", "sync"], MOST = 200;

/* The runs that crawled, the oldest first: the moments whose state is known. */
export async function listMoments(signal) {
  const {runs} = await get(query("/api/v1/runs", {limit: MOST}), signal);
  return runs.filter(run => KINDS.includes(run.kind) && run.finished_at).reverse();
}

/* The number of the newest moment at a time, or 0. */
function positionOf(moments, time) {
  const at = moments.findLastIndex(run => Date.parse(run.finished_at) <= Date.parse(time) + 1);
  return Math.max(0, at);
}

function slider(label, position, moments, last, choose) {
  const shown = make("output", {class: "small q"});
  const text = at => (at >= moments.length ? "now" : clock(moments[at].finished_at));
  const input = make("input", {type: "range", min: 0, max: last, step: 1, "aria-label": label});
  const describe = () => {
    const at = Number(input.value);
    input.setAttribute("aria-valuetext", text(at));
    shown.replaceChildren(text(at), ...at < moments.length ? [" (", ago(moments[at].finished_at), ")"] : []);
  };
  input.value = String(position);
  input.addEventListener("input", describe);
  input.addEventListener("change", () => choose(Number(input.value)));
  describe();
  return make("label", {class: "moment"}, make("span", {text: label}), input, shown);
}

/**
 * The sliders. The end may be now, which is right of the last crawl.
 * @param {any[]} moments
 * @param {{from: any, to: any}} page the moments of the response
 * @param {string | null} to `to` of the address; not set: now
 */
export function timeSlider(moments, page, to) {
  if (moments.length < 2) return null;
  const from = positionOf(moments, page.from.at), end = to ? positionOf(moments, page.to.at) : moments.length;
  const idAt = at => moments[at]?.id ?? "";
  // The beginning stays before the end: the other handle gives way.
  const choose = (start, stop) => setQuery({from: idAt(start), to: idAt(stop)});
  return make("fieldset", {class: "moments"}, make("legend", {class: "only-listeners", text: "Period"}),
    slider("From", from, moments, moments.length - 1, at => choose(at, Math.max(at + 1, end))), slider("To", end, moments, moments.length, at => choose(Math.min(from, Math.max(0, at - 1)), Math.max(1, at))));
}
