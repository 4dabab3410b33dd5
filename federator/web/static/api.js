// Requests to the API. Every error is an ApiError with the problem document's texts.
import {csrfToken, currentToken, requestSignIn} from "./sign_in.js";

export class ApiError extends Error {
  constructor(status, problem) {
    // Errors of the Lance protocol have the message as `error`, and the hint as `detail`.
    const {error, detail} = problem;
    super(error || detail || `status ${status}`);
    this.status = status;
    this.hint = error ? (detail === error ? undefined : detail) : problem.hint;
  }
}

/* The server did not respond at all. */
export class Unreachable extends Error {}

/* query("/api/v1/drift", {severity: "high", source: ""}) leaves out values that are not set. */
export function query(path, values) {
  const set = Object.entries(values).filter(([, value]) => value !== undefined && value !== null && value !== "" && value !== false);
  return set.length ? `${path}?${new URLSearchParams(set)}` : path;
}

export const encode = encodeURIComponent;

/* The snapshot that the address selects, or null for the present. */
export const asOf = () => new URLSearchParams(location.search).get("as_of");

// The reads that have a history. Views that use others show the present, and say so.
const PAST = /^\/api\/v1\/(tree|tables|datasets)(?=[/?]|$)/;

function inSnapshot(path) {
  const moment = asOf();
  return moment && PAST.test(path) ? `${path}${path.includes("?") ? "&" : "?"}${new URLSearchParams({as_of: moment})}` : path;
}

async function request(path, options = {}) {
  const token = currentToken();
  const headers = {accept: "application/json", ...(token ? {authorization: `Bearer ${token}`} : {}), ...options.headers};
  try {
    return await fetch(path, {...options, headers});
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Unreachable("the server does not respond");
  }
}

/* The response of a GET as JSON. A missing or refused credential leads to the sign-in form, and the request is repeated after it. */
export async function get(path, signal) {
  for (;;) {
    const token = currentToken(), response = await request(inSnapshot(path), {signal});
    const body = await readJson(response);
    if (response.ok) return body;
    if (response.status !== 401) throw new ApiError(response.status, body);
    // A request that was sent before somebody signed in says nothing about the new credential.
    if (currentToken() === token) await requestSignIn(body.detail);
    signal?.throwIfAborted();
  }
}

/* The same, and null where there is none or the principal may not see it. */
export async function find(path, signal) {
  try {
    return await get(path, signal);
  } catch (error) {
    if (error instanceof ApiError && [403, 404].includes(error.status)) return null;
    throw error;
  }
}

/* A write, or a read of the Lance protocol. `match` is the digest that the request is bound to. */
export async function send(method, path, body, match, signal) {
  // Reads of the Lance protocol are POSTs, too.
  if (asOf() && !path.startsWith("/v1/")) throw new Error("A snapshot is shown: nothing can be changed in it. Go back to the present first.");
  const headers = {...(body ? {"content-type": "application/json"} : {}), ...(match ? {"if-match": `"${match}"`} : {}),
    ...(csrfToken() && !currentToken() ? {"x-csrf-token": csrfToken()} : {})};
  const response = await request(path, {method, headers, signal, body: body ? JSON.stringify(body) : undefined});
  const result = await readJson(response);
  if (!response.ok) throw new ApiError(response.status, result);
  return result;
}

async function readJson(response) {
  try {
    return await response.json();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    return {detail: response.statusText || `status ${response.status}`};
  }
}

/* Server-sent events by fetch: EventSource cannot send a token. Calls `handle(type, data)` until the stream or the signal ends. */
export async function follow(path, handle, signal) {
  const response = await request(path, {signal, headers: {accept: "text/event-stream"}});
  if (!response.ok) throw new ApiError(response.status, await readJson(response));
  if (response.status === 204) return;
  if (!response.body) return;
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const {value, done} = await reader.read().catch(error => {
      if (error instanceof TypeError) throw new Unreachable("the server does not respond");
      throw error;
    });
    if (done) return;
    const blocks = (rest + value).split("\n\n");
    rest = blocks.pop() ?? "";
    for (const block of blocks) {
      const fields = Object.fromEntries(block.split("\n").map(line => line.split(/: ?(.*)/s, 2)));
      if (fields.event) handle(fields.event, JSON.parse(fields.data));
    }
  }
}

/* Save a file of the API. A link cannot send a token, so the file is fetched. */
export async function download(path, fileName) {
  const response = await request(path, {headers: {accept: "*/*"}});
  if (!response.ok) throw new ApiError(response.status, await readJson(response));
  save(await response.blob(), fileName);
}

/** @param {Blob} content @param {string} fileName */
export function save(content, fileName) {
  const anchor = document.createElement("a");
  anchor.href = URL.createObjectURL(content);
  anchor.download = fileName;
  anchor.click();
  URL.revokeObjectURL(anchor.href);
}

let reading = null;

/** The response of /api/v1/me, read once. @returns {Promise<any>} */
export function readPerson() {
  reading ??= get("/api/v1/me").catch(error => {
    reading = null;
    throw error;
  });
  return reading;
}
