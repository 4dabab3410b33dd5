// The live status: one stream of events while the tab can be seen, and a banner while the server does not respond.
import {ApiError, follow, readPerson, Unreachable} from "./api.js";
import {onOverview, readOverview} from "./attention.js";
import {byId, icon, make} from "./dom.js";
import {ago} from "./format.js";
import {button} from "./parts.js";

// The server sends something at once, and every 15 s: a stream that is silent for longer is dead, or a proxy keeps what it sends.
const FIRST = 10_000, SILENCE = 40_000, MAX_WAIT = 30_000;
// Without a stream, everything is read again every 15 s, and the stream is tried again after some minutes.
export const POLL = 15_000;
const POLLS = 20;
const listeners = [];
let known = null, reader = new AbortController();

/* Called with the names of what has changed (overview, runs, plans), the sources with a new revision, and whether the overview was read. */
export const onChange = listener => listeners.push(listener);

// The first overview has the state that events are compared with: what changes before the stream is open is noticed, too.
onOverview(({live}) => { known ??= live; });

function compare(state, isRead = false) {
  const before = known;
  known = state;
  if (!before) return;
  const parts = ["overview", "runs", "plans"].filter(part => state[part] !== before[part]), sources = Object.keys(state.revisions).filter(source => state.revisions[source] !== before.revisions[source]);
  for (const listener of listeners) listener(parts, sources, isRead);
}

/* One tab of the browser follows the stream, and the others of the same principal get its events: a browser keeps few connections to a
   server, and the service few streams of a principal. The lock passes to the next tab when its holder is hidden or closed. */
const channel = person => `federator-live ${JSON.stringify([person.name, person.role, person.scopes])}`;

/* Follow the stream, or what another tab says of it, until it ends or is silent. `alive` is called at each event. */
async function listen(alive) {
  const {promise: stopped, reject: stop} = Promise.withResolvers(), topic = channel(await readPerson()), tabs = new BroadcastChannel(topic);
  let timer = 0;
  reader = new AbortController();
  const {signal} = reader;
  signal.addEventListener("abort", () => stop(signal.reason));
  const wait = most => {
    clearTimeout(timer);
    timer = setTimeout(() => reader.abort(new Unreachable("the stream of events is silent")), most);
  };
  const heard = (type, state) => {
    wait(SILENCE);
    alive();
    if (type === "state") compare(state);
  };
  tabs.onmessage = ({data}) => {
    // Another tab asks what the state is, or tells it.
    if (data.type === "hello") { if (holdsLock && known) tabs.postMessage({type: "state", state: known}); } else heard(data.type, data.state);
  };
  let holdsLock = false;
  const followForAll = () => {
    holdsLock = true;
    return follow("/api/v1/events", (type, state) => {
      heard(type, state);
      tabs.postMessage({type, state});
    }, signal);
  };
  try {
    wait(FIRST);
    tabs.postMessage({type: "hello"});
    const following = navigator.locks ? navigator.locks.request(topic, {signal}, followForAll) : followForAll();
    await Promise.race([following, stopped]);
  } finally {
    clearTimeout(timer);
    tabs.close();
    reader.abort();
  }
}

// Ends the present wait for the next attempt.
let tryNow = () => {};
const pause = wait => new Promise(wake => {
  tryNow = () => wake(null);
  setTimeout(tryNow, wait);
});

const shown = () => new Promise(wake => {
  if (!document.hidden) wake(null);
  else document.addEventListener("visibilitychange", () => wake(null), {once: true});
});

/* Follow the stream until it ends, for whatever reason: the next request finds whether the server responds. Returns whether it sent anything. */
async function useStream(report) {
  let isHeard = false;
  try {
    await listen(() => {
      isHeard = true;
      report(null, 0, "live");
    });
  } catch (problem) {
    // A refused credential leads to the sign-in form, by the overview.
    if (problem.name === "AbortError" || (problem instanceof ApiError && problem.status === 401)) return true;
  }
  return isHeard;
}

/* Read everything again and again, for some minutes. */
async function poll(report) {
  for (let number = 0; number < POLLS; number += 1) {
    report(null, 0, "polling");
    await pause(POLL);
    await shown();
    compare((await readOverview()).live, true);
  }
}

/* Read the overview, then follow the stream, or poll where nothing comes through it; again after its end, and after errors in 1, 2, 4 … 30 s.
   `report(problem, wait, way)` gets the error, or null, and the milliseconds until the next try, or how changes are noticed: live, polling.
   `isRead`: the view reads the overview itself at first. */
export async function startLive(report, isRead) {
  let errors = 0, skip = isRead;
  for (;;) {
    await shown();
    try {
      if (!skip) await readOverview();
      skip = false;
      report(null, 0);
      if (await useStream(report)) await pause(1000);
      else await poll(report);
      errors = 0;
    } catch (problem) {
      const wait = Math.min(MAX_WAIT, 1000 * 2 ** errors++);
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

/* `seen` is the time of the last response (ISO, or null), `wait` the milliseconds until the next request. Returns whether the server does not respond. */
export function showOutage(problem, seen, wait) {
  remove();
  if (!(problem instanceof Unreachable)) return false;
  const end = Date.now() + wait, seconds = make("span", {"aria-hidden": "true"});
  const count = () => { seconds.textContent = `Asked again in ${Math.max(0, Math.ceil((end - Date.now()) / 1000))} s.`; };
  count();
  timer = setInterval(count, 1000);
  banner = make("div", {class: "note bad", id: "outage", role: "alert"}, icon("gone"),
    make("span", {class: "grow"}, "The server does not respond. ", seen ? ["What is shown is ", ago(seen, {suffix: " old"}), ". "] : null, seconds), button("Try now", () => tryNow()));
  byId("main").before(banner);
  return true;
}
