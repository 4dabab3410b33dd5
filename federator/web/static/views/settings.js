// Tokens, jobs and notifications, with the actions that the role allows.
import {find, get, readPerson, send} from "../api.js";
import {make, name} from "../dom.js";
import {ago, count, state, until} from "../format.js";
import {button, copyButton, empty, needing, pairs, panel, table} from "../parts.js";
import {announce, attempt, reload} from "../router.js";
import {runLink} from "./runs.js";
import {tokensPanel} from "./tokens.js";

const JOBS = [["Job"], ["Schedule"], ["State"], ["Last start"], ["Next"], ["Run", "full"], ["Actions", "full"]];
const NOTIFICATIONS = [["Channel"], ["State"], ["Severity"], ["Notices", "n"], ["Attempts", "n"], ["Created"], ["Error", "long"], ["Action"]];

function jobCells(job) {
  const act = (action, text, message) => needing("operator", button(text, () => attempt(async () => {
    await send("POST", `/api/v1/jobs/${encodeURIComponent(job.name)}/${action}`);
    await reload();
    announce(message);
  }), {"aria-label": `${text}: ${job.name}`}));
  return [name(job.name), make("code", {text: job.schedule}), job.paused ? state("paused") : state("ok", {text: "scheduled"}), ago(job.last_started_at), job.next_at ? until(job.next_at) : null, job.last_run_id ? runLink(job.last_run_id) : null,
    make("span", {class: "nw"}, act("run", "Run now", `${job.name} requested`), " ", job.paused ? act("resume", "Resume", "Resumption requested") : act("pause", "Pause", "Pause requested"))];
}

function notificationCells(item) {
  const retry = button("Send again", () => attempt(async () => {
    await send("POST", `/api/v1/notifications/${encodeURIComponent(item.id)}/retry`);
    await reload();
    announce("The notification is sent again.");
  }));
  return [name(item.channel), state(item.state), state(item.severity, {text: item.severity}), count(item.events), count(item.attempts), ago(item.created_at), item.error, item.state === "dead" ? retry : null];
}

export async function show({signal}) {
  const [jobs, notifications, tokens, person] = await Promise.all([get("/api/v1/jobs", signal), find("/api/v1/notifications", signal), tokensPanel(signal), readPerson()]);
  const sent = notifications?.notifications ?? [], address = `${location.origin}/api/v1`;
  return {title: "Settings", nodes: [make("div", {class: "title head"}, make("h1", {tabindex: "-1", text: "Settings"})), make("div", {class: "stack"},
    panel("Jobs", {}, jobs.jobs.length ? table(JOBS, jobs.jobs.map(jobCells), "Jobs") : empty("No job is scheduled", "A schedule in the configuration makes one.")),
    panel("Notifications", {}, notifications === null ? empty("You may not see these", "They need the role operator and the scope *.", {state: "denied"})
      : sent.length ? table(NOTIFICATIONS, sent.map(notificationCells), "Notifications") : empty("No notification was sent")), tokens,
    panel("About", {}, pairs([["Version", person.version], ["API", make("span", {}, make("code", {text: address}), copyButton(address, "address"))], ["Reference", make("a", {class: "link", href: "/docs", text: "/docs"})], ["Your role", person.role], ["Your scopes", name(person.scopes.join(", "))]])))]};
}
