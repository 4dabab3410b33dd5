// Ctrl-K: tables, sources, views and commands, found while one types.
import {onOverview} from "./attention.js";
import {encode, get, send} from "./api.js";
import {around, byId, icon, lastName, make, name, parentId, trail} from "./dom.js";
import {FOOT, isShortcut, showKeys, VIEWS} from "./keys.js";
import {path, UI} from "./parts.js";
import {announce, attempt, navigate, onRoute} from "./router.js";

const RECENT = "federator-recent", WAIT = 120;

const input = make("input", {type: "text", role: "combobox", "aria-expanded": "true", "aria-controls": "palette-list", "aria-label": "Search or jump to", "aria-autocomplete": "list",
  placeholder: "A table, a source, a view, or > for commands", autocomplete: "off", maxlength: 200});
const list = make("div", {class: "pal", role: "listbox", id: "palette-list", "aria-label": "Found"}), status = make("p", {class: "only-listeners", role: "status"});
const dialog = make("dialog", {id: "palette", "aria-label": "Search or jump to"}, make("div", {class: "pal-in"}, icon("search"), input, make("kbd", {text: "Esc"})), list, status,
  make("div", {class: "pal-foot"}, make("span", {}, make("kbd", {text: "↑"}), " ", make("kbd", {text: "↓"}), " choose"), make("span", {}, make("kbd", {text: "Enter"}), " open"),
    make("span", {}, make("kbd", {text: ">"}), " commands"), make("span", {}, make("kbd", {text: "@"}), " sources")));
let sources = [], options = [], chosen = 0, asked = 0;

const recent = () => JSON.parse(sessionStorage.getItem(RECENT) || "[]");

const tableOption = (id, match) => ({group: match?.kind === "typo" ? "Similar names" : "Tables", shape: "table", text: lastName(id), where: parentId(id),
  ranges: match?.parts.find(part => part.field === "name")?.ranges, open: () => navigate(path("t", id))});

const crawl = (text, request) => ({group: "Commands", shape: "run", text, open: () => attempt(async () => {
  const {id} = await send("POST", "/api/v1/runs", {kind: "crawl", ...request});
  announce(`Crawl requested (request ${id}). It starts when the worker is free.`);
})});

/* The options that need no request, in groups. */
function known(text) {
  const [prefix, wanted] = [">", "@"].includes(text[0]) ? [text[0], text.slice(1).trim()] : ["", text];
  const has = option => option.text.toLowerCase().includes(wanted.toLowerCase());
  const keys = {group: "Commands", shape: "settings", text: "Keys of the page", keys: "?", open: showKeys};
  const commands = [crawl("Crawl all sources", {}), ...sources.map(source => crawl(`Crawl ${source}`, {sources: [source]})), keys].filter(has);
  const found = sources.map(source => ({group: "Sources", shape: "source", text: source, open: () => navigate(path("t", source))})).filter(has);
  const views = [...VIEWS, ...FOOT].map(([shape, label, address, key]) => ({group: "Views", shape, text: label, keys: key && `g ${key}`, open: () => navigate(`${UI}/${address}`)})).filter(has);
  if (prefix === ">") return commands;
  if (prefix === "@") return found;
  const everywhere = {group: "Search", shape: "search", text: `Search for ${wanted}`, open: () => navigate(`${UI}/search?q=${encode(wanted)}`)};
  return wanted ? [...found.slice(0, 5), ...views, ...commands.slice(0, 5), everywhere] : [...recent().map(id => ({...tableOption(id), group: "Recent"})), ...views];
}

function draw() {
  let group = "";
  list.replaceChildren(...options.flatMap((option, at) => {
    const head = option.group === group ? null : make("div", {class: "pal-group", role: "presentation", text: option.group});
    group = option.group;
    return [head, make("div", {role: "option", id: `option-${at}`, "aria-selected": String(at === chosen), "data-at": at}, icon(option.shape), name(option.text, {ranges: option.ranges ?? []}),
      option.where ? make("small", {}, trail(option.where)) : null, option.keys ? make("kbd", {text: option.keys}) : null)].filter(part => part !== null);
  }));
  input.setAttribute("aria-activedescendant", options.length ? `option-${chosen}` : "");
  status.textContent = `${options.length} found`;
}

async function type() {
  const text = input.value.trim(), number = ++asked;
  chosen = 0;
  options = known(text);
  draw();
  if (!text || [">", "@"].includes(text[0])) return;
  await new Promise(wake => setTimeout(wake, WAIT));
  if (number !== asked) return;
  try {
    const {nodes} = await get(`/api/v1/suggest?q=${encode(text)}`);
    if (number !== asked) return;
    options = [...nodes.map(node => tableOption(node.id, node.match)), ...known(text)];
    draw();
  } catch (error) {
    status.textContent = error.message;
  }
}

function open() {
  input.value = "";
  type();
  dialog.showModal();
}

function run(at) {
  dialog.close();
  options[at]?.open();
}

export function startPalette() {
  document.body.append(dialog);
  onOverview(overview => { sources = overview.sources.map(source => source.name); });
  onRoute(route => {
    if (route.view !== "object" || !route.argument.includes("$")) return;
    sessionStorage.setItem(RECENT, JSON.stringify([route.argument, ...recent().filter(id => id !== route.argument)].slice(0, 5)));
  });
  const opener = make("button", {class: "find", type: "button", "aria-keyshortcuts": "Control+K", onclick: open}, icon("search"), make("span", {text: "Search tables, or jump to …"}), make("kbd", {text: "Ctrl K"}));
  byId("tools").prepend(opener);
  input.addEventListener("input", type);
  list.addEventListener("click", event => { const option = around(event, "[role=option]"); if (option) run(Number(option.dataset.at)); });
  dialog.addEventListener("click", event => { if (event.target === dialog) dialog.close(); });
  input.addEventListener("keydown", event => {
    const step = {ArrowDown: 1, ArrowUp: -1}[event.key];
    if (event.key === "Enter") run(chosen);
    else if (step && options.length) {
      chosen = (chosen + step + options.length) % options.length;
      draw();
      byId(`option-${chosen}`).scrollIntoView({block: "nearest"});
    } else return;
    event.preventDefault();
  });
  document.addEventListener("keydown", event => {
    const summons = (event.ctrlKey || event.metaKey) && event.key === "k";
    if (!summons && (event.key !== "/" || !isShortcut(event))) return;
    if (document.querySelector("dialog[open]")) return;
    event.preventDefault();
    open();
  });
}
