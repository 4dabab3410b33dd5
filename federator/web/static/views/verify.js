// Verification of one table on request, followed to its result.
import {get, send} from "../api.js";
import {make} from "../dom.js";
import {words} from "../format.js";
import {button, unlessAllowed} from "../parts.js";
import {announce, attempt, reload} from "../router.js";
import {refreshTree} from "../tree.js";
import {followRequest, requestLine} from "./requests.js";

/* The button, and the line that follows its request. Both are null for a table that verification does not open. */
export function verifyParts(found, person, signal) {
  if (found.unverifiable) return {button: null, line: null};
  const line = make("p", {id: "verifying", role: "status", "data-kept": true});
  const ask = button("Verify now", () => attempt(async () => {
    ask.disabled = true;
    try {
      const queued = await send("POST", "/api/v1/runs", {kind: "verify", tables: [found.id]});
      const {run} = await followRequest(queued, (request, state) => line.replaceChildren(...requestLine(request, state).filter(Boolean)), signal);
      if (run?.state !== "ok") return;
      // The state of the run would stand beside that of the table.
      line.replaceChildren();
      const {dataset} = await get(`/api/v1/tables/${encodeURIComponent(found.id)}`, signal);
      await reload();
      refreshTree([found.source]);
      announce(`Verified just now: ${words(dataset?.state)}`, ["valid", "declared_only"].includes(dataset?.state) ? "ok" : "bad");
    } finally {
      ask.disabled = false;
      // A disabled button loses the focus, and the view has a new button when it was read again.
      if (document.activeElement === document.body) document.getElementById("verify-now")?.focus();
    }
  }), {id: "verify-now", kind: "main", shape: "run", ...unlessAllowed(person, "operator")});
  return {button: make("div", {class: "acts"}, ask), line};
}
