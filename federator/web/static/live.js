// The live status: one stream of events while the tab can be seen, and a banner while the server does not respond.
import {ApiError, follow, Unreachable} from "./api.js";
import {readOverview} from "./attention.js";
import {byId, icon, make} from "./dom.js";
import {ago} from "./format.js";

// The server sends something every 15 s: a stream that is silent for longer is dead.
const SILENCE = 40_000, MAX_WAIT = 30_000;
const listeners = [];
let known = null, reader = new AbortController();

/* Called with the names of what has changed (overview, runs, plans) and the sources with a new revision. */
export const onChange = listener => listeners.push(listener);

const changedSources = (state, before) => Object.keys(state.revisions).filter(source => state.revisions[source] !== before.revisions[source]);

function compare(state) {
  const before = known;
  known = state;
  if (!before) return;
  const parts = ["overview", "runs", "plans"].filter(part => state[part] !== before[part]), sources = changedSources(state, before);
  for (const listener of listeners) listener(parts, sources);
}

/* Follow the stream until it ends or is silent. `alive` is called at each event. */
async function listen(alive) {
  let timer = 0;
  reader = new AbortController();
  const heard = () => {
    clearTimeout(timer);
    timer = setTimeout(() => reader.abort(new Unreachable("the server does not respond")), SILENCE);
    alive();
  };
  try {
    await follow("/api/v1/events", (type, state) => {
      heard();
      if (type === "state") compare(state);
    }, reader.signal);
  } finally {
    clearTimeout(timer);
  }
}

const pause = wait => new Promise(wake => setTimeout(wake, wait));

const shown = () => new Promise(wake => {
  if (!document.hidden) wake(null);
  else document.addEventListener("visibilitychange", () => wake(null), {once: true});
});

/* Read the overview, then follow the stream; again after its end, and after errors in 1, 2, 4 … 30 s. `report(problem, wait)` gets the
   error, or null, and the milliseconds until the next try. `isRead`: the view reads the overview itself at first. */
export async function startLive(report, isRead) {
  let errors = 0, skip = isRead;
  for (;;) {
    await shown();
    try {
      if (!skip) await readOverview();
      skip = false;
      report(null, 0);
      await listen(() => {
        errors = 0;
        report(null, 0);
      });
      await pause(1000);
    } catch (problem) {
      if (problem.name === "AbortError" && document.hidden) continue;
      // A refused credential leads to the sign-in form, by the overview.
      const wait = problem instanceof ApiError && problem.status === 401 ? 0 : Math.min(MAX_WAIT, 1000 * 2 ** errors++);
      report(problem, wait);
      await pause(wait);
    }
  }
}

document.addEventListener("visibilitychange", () => { if (document.hidden) reader.abort(); });

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
