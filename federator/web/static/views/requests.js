// A request to the worker: it waits for the worker, then its run is followed until it ends.
import {follow, get, send} from "../api.js";
import {readOverview} from "../attention.js";
import {make} from "../dom.js";
import {counted, state} from "../format.js";
import {path, sentences} from "../parts.js";
import {announce, refresh} from "../router.js";

const WAIT = 1000;

/**
 * Follow a request. `handle(request, run)` gets each new state; `run` is null until the worker has started it.
 * @param {any} queued response of the request that queued it
 * @param {(request: any, run: any) => void} handle
 * @param {AbortSignal} signal
 * @returns {Promise<{request: any, run: any}>} the last states
 */
export async function followRequest(queued, handle, signal) {
  let request = queued, run = null, ended = false;
  while (["queued", "running"].includes(request.state) && !request.run_id) {
    handle(request, null);
    await new Promise(wake => setTimeout(wake, WAIT));
    request = await get(`/api/v1/requests/${request.id}`, signal);
  }
  while (request.run_id && !ended && !signal.aborted) {
    await follow(`/api/v1/runs/${encodeURIComponent(request.run_id)}/events`, (type, data) => {
      [run, ended] = [data, type === "end"];
      handle(request, run);
    }, signal);
  }
  signal.throwIfAborted();
  return {request, run};
}

/* Why a run did not succeed: its error, or that of its first source or mirror. */
const problemOf = run => run.error ?? ["failed", "partial"].map(bad => run.stages.find(stage => stage.state === bad)?.detail).find(Boolean);

/* The present state of a request in one line, with a link to its run. */
export function requestLine(request, run) {
  if (!run && request.run_id) return [state(request.state), " ", make("a", {href: path("runs", request.run_id), text: "Follow the run"})];
  if (!run) return [state(request.state), " ", ["queued", "running"].includes(request.state) ? "It starts when the worker is free." : "It did not start."];
  const writes = run.writes && Object.keys(run.writes).length ? ` ${counted(run.writes)}.` : "", problem = problemOf(run);
  return [state(run.state), writes, problem ? ` ${sentences(problem)}.` : "", " ", make("a", {href: path("runs", run.id), text: run.finished_at ? "Open the run" : "Follow the run"})];
}

/**
 * Request a run, and say how it ended, in whatever view that is. A crawl that failed makes no revision: what shows its sources is read again.
 * @param {string} title
 * @param {{kind: string, sources?: string[], [field: string]: any}} body
 */
export async function requestRun(title, body) {
  const queued = await send("POST", "/api/v1/runs", body);
  announce(`${title} requested. It starts when the worker is free.`);
  const {request, run} = await followRequest(queued, () => {}, new AbortController().signal), {sources} = await readOverview();
  refresh(["overview", "runs", "plans"], body.sources ?? sources.map(source => source.name));
  announce(make("span", {}, `${title}: `, requestLine(request, run)), run?.state === "ok" ? "ok" : "bad");
}
