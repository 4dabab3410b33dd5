// Plans on demand: the mirrors that copy between the sources of some objects, and a button that requests the plan of one.
import {find, get, query, send} from "../api.js";
import {make} from "../dom.js";
import {counted} from "../format.js";
import {button, needing} from "../parts.js";
import {attempt} from "../router.js";
import {planLink} from "./plans.js";
import {followRequest, requestLine} from "./requests.js";

export const listMirrors = async signal => (await find("/api/v1/mirrors?limit=1000", signal))?.mirrors ?? [];

const sourceOf = id => id.split("$")[0];

/* The mirrors whose origin and target are both among the sources of these objects. */
export function mirrorsBetween(mirrors, ids) {
  const sources = new Set(ids.filter(Boolean).map(sourceOf));
  return mirrors.filter(mirror => mirror.from !== mirror.to && sources.has(mirror.from) && sources.has(mirror.to));
}

/* Request the plan of a mirror, and show its progress and then the plan in `line`. */
async function plan(mirror, line, signal) {
  const queued = await send("POST", "/api/v1/runs", {kind: "plan", mirrors: [mirror.name]});
  const {request, run} = await followRequest(queued, (...states) => line.replaceChildren(`Plan of ${mirror.name}: `, ...requestLine(...states)), signal);
  const plans = run ? (await get(query("/api/v1/plans", {run: run.id, mirror: mirror.name}), signal)).plans : [];
  const changes = plans[0] && Object.keys(plans[0].changes).length ? counted(plans[0].changes) : "no changes";
  line.replaceChildren(`Plan of ${mirror.name}: `, ...plans.length ? [planLink(plans[0].digest), ` ${changes}`] : ["no new plan, ", ...requestLine(request, run)]);
}

export const resultLine = () => make("p", {class: "small", role: "status", id: "planned", "data-kept": true});

/**
 * A button for each mirror; the result is shown in `line`.
 * @param {any[]} mirrors
 * @param {HTMLElement} line
 * @param {AbortSignal} signal
 */
export const planButtons = (mirrors, line, signal) => mirrors.map(mirror =>
  needing("operator", button(`Plan ${mirror.name}`, () => attempt(() => plan(mirror, line, signal)), {shape: "plan", "data-shared": true})));
