// Ctrl-K: tables, sources, plans, runs, views and commands, found while one types; and what is inside a namespace.
import {onOverview} from "./attention.js";
import {encode, get, query, send} from "./api.js";
import {around, byId, icon, lastName, make, name, parentId, splitId, trail} from "./dom.js";
import {words} from "./format.js";
import {FOOT_VIEWS, isShortcut, showKeys, VIEWS} from "./keys.js";
import {path, UI} from "./parts.js";
import {announce, attempt, navigate, onRoute} from "./router.js";

const RECENT = "federator-recent", WAIT = 120, INSIDE = 1000, PREFIXES = [">", "@", "#"];

const input = make("input", {type: "text", role: "combobox", "aria-expanded": "true", "aria-controls": "palette-list", "aria-label": "Search or jump to", "aria-autocomplete": "list",
  autocomplete: "off", maxlength: 200});
const list = make("div", {class: "pal", role: "listbox", id: "palette-list", "aria-label": "Found"}), status = make("p", {class: "only-listeners", role: "status"});
const dialog = make("dialog", {id: "palette", "aria-label": "Search or jump to"}, make("div", {class: "pal-in"}, icon("search"), input, make("kbd", {text: "Esc"})), list, status,
  make("div", {class: "pal-foot"}, make("span", {}, make("kbd", {text: "↑"}), " ", make("kbd", {text: "↓"}), " choose"), make("span", {}, make("kbd", {text: "Enter"}), " open"),
    make("span", {}, make("kbd", {text: "Tab"}), " look inside"), make("span", {}, make("kbd", {text: ">"}), " commands"), make("span", {}, make("kbd", {text: "@"}), " sources"), make("span", {}, make("kbd", {text: "#"}), " plans and runs")));
const PLACEHOLDER = "A table, a source, a view, or > for commands";
let sources = [], options = [], chosen = 0, asked = 0, complete = Promise.resolve();
// The object whose children are listed, "" for the tree root; null: everything is searched. And the promises of what is listed, and of commands.
let within = null, listed = null, commands = null;

const recent = () => JSON.parse(sessionStorage.getItem(RECENT) || "[]");

const tableOption = (id, match) => ({group: match?.kind === "typo" ? "Similar names" : "Tables", shape: "table", text: lastName(id), where: parentId(id), inside: parentId(id),
  ranges: match?.parts.find(part => part.field === "name")?.ranges, open: () => navigate(path("t", id))});

const runCommand = (text, request, shape = "run") => ({group: "Commands", shape, text, open: () => attempt(async () => {
  const {requestRun} = await import("./views/requests.js");
  await requestRun(text, request);
})});
const crawl = (text, request) => runCommand(text, {kind: "crawl", ...request});

const jobCommand = ({name, paused}) => ({group: "Commands", shape: "held", text: `${paused ? "Resume" : "Pause"} the job ${name}`, open: () => attempt(async () => {
  await send("POST", `/api/v1/jobs/${encode(name)}/${paused ? "resume" : "pause"}`);
  announce(paused ? `Resumption of ${name} requested` : `Pause of ${name} requested. A run in progress continues.`);
})});

/* The commands for mirrors and jobs as options. */
async function readCommands() {
  const [{mirrors}, {jobs}] = await Promise.all([get("/api/v1/mirrors?limit=1000"), get("/api/v1/jobs")]);
  return [...jobs.map(jobCommand), ...mirrors.flatMap(({name}) => [runCommand(`Plan ${name}`, {kind: "plan", mirrors: [name]}, "plan"), runCommand(`Sync ${name}`, {kind: "sync", mirrors: [name]})])];
}

/* The children of an object as options. */
async function readInside(id) {
  const {nodes, next} = await get(query("/api/v1/tree", {path: id, limit: INSIDE})), group = id ? `In ${splitId(id).join(" › ")}${next ? `, the first ${INSIDE}` : ""}` : "Sources";
  return nodes.map(node => ({group, shape: {source: "source", namespace: "namespace"}[node.kind] ?? "table", text: node.name, inside: ["source", "namespace"].includes(node.kind) ? node.id : null,
    open: () => navigate(path("t", node.id) + (node.kind === "namespace" ? "?kind=namespace" : ""))}));
}

/* The newest plans and runs as options. */
async function readWork() {
  const [{plans}, {runs}] = await Promise.all([get("/api/v1/plans?limit=100"), get("/api/v1/runs?limit=100")]);
  return [...plans.map(plan => ({group: "Plans", shape: "plan", text: `${plan.mirror} ${plan.digest.slice(0, 12)}`, note: words(plan.state), open: () => navigate(path("plans", plan.digest))})),
    ...runs.map(run => ({group: "Runs", shape: "run", text: `${run.kind} ${run.id}`, note: words(run.state), open: () => navigate(path("runs", run.id))}))];
}

/* The options that have each word. */
const matching = (list, wanted) => list.filter(option => wanted.toLowerCase().split(/\s+/).every(word => `${option.text} ${option.note ?? ""}`.toLowerCase().includes(word)));

/* The options that need no request, in groups. `more`: commands that were read. */
function known(text, more = []) {
  const [prefix, wanted] = PREFIXES.includes(text[0]) ? [text[0], text.slice(1).trim()] : ["", text];
  const keys = {group: "Commands", shape: "settings", text: "Keys of the page", keys: "?", open: showKeys};
  const commands = matching([crawl("Crawl all sources", {}), ...sources.map(source => crawl(`Crawl ${source}`, {sources: [source]})), keys], wanted);
  const found = matching(sources.map(source => ({group: "Sources", shape: "source", text: source, inside: source, open: () => navigate(path("t", source))})), wanted);
  const views = matching([...VIEWS, ...FOOT_VIEWS].map(({shape, label, address, key}) => ({group: "Views", shape, text: label, keys: key && `g ${key}`, open: () => navigate(`${UI}/${address}`)})), wanted);
  if (prefix === ">") return commands;
  if (prefix === "@") return found;
  const everywhere = {group: "Search", shape: "search", text: `Search for ${wanted}`, open: () => navigate(`${UI}/search?q=${encode(wanted)}`)};
  const location = wanted.includes("://") ? [{group: "Locations", shape: "dataset", text: wanted, open: () => navigate(path("datasets", wanted))}] : [];
  return wanted ? [...location, ...found.slice(0, 5), ...views, ...[...commands, ...more].slice(0, 5), everywhere] : [...recent().map(id => ({...tableOption(id), group: "Recent"})), ...views];
}

function draw() {
  let group = "";
  list.replaceChildren(...options.flatMap((option, at) => {
    const head = option.group === group ? null : make("div", {class: "pal-group", role: "presentation", text: option.group});
    group = option.group;
    return [head, make("div", {role: "option", id: `option-${at}`, "aria-selected": String(at === chosen), "data-at": at}, icon(option.shape), name(option.text, {ranges: option.ranges ?? []}),
      option.where ? make("small", {}, trail(option.where)) : null, option.note ? make("small", {text: option.note}) : null, option.keys ? make("kbd", {text: option.keys}) : null)].filter(part => part !== null);
  }));
  input.setAttribute("aria-activedescendant", options.length ? `option-${chosen}` : "");
  status.textContent = `${options.length} found`;
}

async function find() {
  const text = input.value.trim(), number = ++asked, isListed = within !== null || text[0] === "#";
  chosen = 0;
  options = isListed ? [] : known(text);
  draw();
  if (!isListed && (!text || text[0] === "@")) return;
  try {
    if (isListed) {
      const list = await (listed ??= within === null ? readWork() : readInside(within));
      if (number !== asked) return;
      options = matching(list, within === null ? text.slice(1).trim() : text);
    } else if (text[0] === ">") {
      const more = await (commands ??= readCommands());
      if (number !== asked) return;
      options = [...options, ...matching(more, text.slice(1).trim())];
    } else {
      await new Promise(wake => setTimeout(wake, WAIT));
      if (number !== asked) return;
      const [{nodes}, more] = await Promise.all([get(`/api/v1/suggest?q=${encode(text)}`), commands ??= readCommands()]);
      if (number !== asked) return;
      options = [...nodes.map(node => tableOption(node.id, node.match)), ...known(text, matching(more, text))];
    }
    draw();
    if (!options.length) status.textContent = "nothing found";
  } catch (error) {
    listed = commands = null;
    status.textContent = error.message;
    list.replaceChildren(make("p", {class: "pad q", text: error.message}));
  }
}

const type = () => { complete = find(); };

/* List what is inside an object, or search everything. */
function look(id) {
  within = id;
  listed = commands = null;
  input.value = "";
  input.placeholder = id === null ? PLACEHOLDER : id ? `Inside ${splitId(id).join(" › ")} (Backspace: one level up)` : "Sources";
  type();
}

function open() {
  look(null);
  dialog.showModal();
}

/* Open the palette with the children of an object; "" for the sources. */
function openWithin(id) {
  look(id);
  dialog.showModal();
}

function run(at) {
  dialog.close();
  options[at]?.open();
}

/* Open the chosen option. Unless one chose another, this is the first of all: it may not be known yet. */
async function openChosen() {
  const number = asked;
  if (!chosen) await complete;
  if (number === asked && dialog.open && options.length) run(chosen);
}

export function startPalette() {
  document.body.append(dialog);
  onOverview(overview => { sources = overview.sources.map(source => source.name); });
  onRoute(route => {
    if (route.view !== "object" || !route.argument.includes("$")) return;
    sessionStorage.setItem(RECENT, JSON.stringify([route.argument, ...recent().filter(id => id !== route.argument)].slice(0, 5)));
  });
  const opener = make("button", {class: "find", type: "button", "aria-keyshortcuts": "Control+K", onclick: open}, icon("search"), make("span", {text: "Search or jump"}), make("kbd", {text: "Ctrl K"}));
  byId("tools").prepend(opener);
  input.addEventListener("input", type);
  list.addEventListener("click", event => { const option = around(event, "[role=option]"); if (option) run(Number(option.dataset.at)); });
  dialog.addEventListener("click", event => { if (event.target === dialog) dialog.close(); });
  input.addEventListener("keydown", event => {
    const step = {ArrowDown: 1, ArrowUp: -1}[event.key];
    const inside = options[chosen]?.inside;
    if (event.key === "Enter") openChosen();
    else if (event.key === "Tab" && !event.shiftKey && inside) look(inside);
    else if (event.key === "Backspace" && !input.value && within !== null) look(within ? parentId(within) : null);
    else if (step && options.length) {
      chosen = (chosen + step + options.length) % options.length;
      draw();
      byId(`option-${chosen}`).scrollIntoView({block: "nearest"});
    } else return;
    event.preventDefault();
  });
  document.addEventListener("click", event => {
    const within = around(event, "[data-inside]");
    if (within) openWithin(within.dataset.inside ?? "");
  });
  document.addEventListener("keydown", event => {
    const summons = (event.ctrlKey || event.metaKey) && event.key === "k";
    if (!summons && (event.key !== "/" || !isShortcut(event))) return;
    if (document.querySelector("dialog[open]")) return;
    event.preventDefault();
    open();
  });
}
