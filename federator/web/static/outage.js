// A banner while the server does not respond: how old the shown data is, and when the server is asked again.
import {Unreachable} from "./api.js";
import {byId, icon, make} from "./dom.js";
import {ago} from "./format.js";

let banner = null, timer = 0;

function remove() {
  clearInterval(timer);
  banner?.remove();
  banner = null;
}

/* `seen` is the time of the last response (ISO, or null), `wait` the milliseconds until the next request. */
export function showOutage(problem, seen, wait) {
  remove();
  if (!(problem instanceof Unreachable)) return;
  const end = Date.now() + wait, seconds = make("span", {"aria-hidden": "true"});
  const count = () => { seconds.textContent = `Asked again in ${Math.max(0, Math.ceil((end - Date.now()) / 1000))} s.`; };
  count();
  timer = setInterval(count, 1000);
  banner = make("div", {class: "note bad", id: "outage", role: "alert"}, icon("gone"),
    make("span", {}, "The server does not respond. ", seen ? ["What is shown is ", ago(seen, {suffix: " old"}), ". "] : null, seconds));
  byId("main").before(banner);
}
