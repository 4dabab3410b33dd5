// Keys of lists: the row in hand has the focus; rows can be selected, copied and acted on.
import {send} from "../api.js";
import {byId, icon, make, name} from "../dom.js";
import {plural} from "../format.js";
import {announce, attempt, navigate} from "../router.js";
import {focusRow, linkOf, pick, ROWS} from "./keep.js";

const listRows = () => [.../** @type {NodeListOf<HTMLElement>} */ (byId("main").querySelectorAll(ROWS))].filter(row => row.checkVisibility());

const current = () => /** @type {HTMLElement | null} */ (document.activeElement?.closest(`main :is(${ROWS})`) ?? null);

/* What a row is about: the last part of its address, or its text. */
function idOf(row) {
  const address = linkOf(row)?.pathname;
  return address ? decodeURIComponent(address.slice(address.lastIndexOf("/") + 1)) : row.textContent.trim();
}

function move(step) {
  const rows = listRows(), row = current(), at = row ? rows.indexOf(row) : step > 0 ? -1 : rows.length;
  const next = rows[Math.max(0, Math.min(rows.length - 1, at + step))];
  if (!next) return;
  focusRow(next);
  next.scrollIntoView({block: "nearest"});
}

const selected = () => listRows().filter(row => row.classList.contains("picked"));

function select(row) {
  pick(row, !row.classList.contains("picked"));
  announce(`${plural(selected().length, "row")} selected`);
}

const inHand = () => { const rows = selected(), row = current(); return rows.length ? rows : row ? [row] : []; };

const copy = texts => attempt(async () => {
  await navigator.clipboard.writeText(texts.join("\n"));
  announce(texts.length === 1 ? `Copied: ${texts[0]}` : `${texts.length} ids copied`);
});

const verify = ids => attempt(async () => {
  const {id} = await send("POST", "/api/v1/runs", {kind: "verify", tables: ids});
  announce(`Verification of ${plural(ids.length, "table")} requested (request ${id}).`);
});

// The API verifies at most this many in one request.
const MOST = 20;

/**
 * The buttons of the first row whose text is that of a button of each other row.
 * @param {HTMLElement[]} rows
 * @returns {HTMLButtonElement[]}
 */
function sharedButtons(rows) {
  const [first, ...others] = rows.map(row => /** @type {HTMLButtonElement[]} */ ([...row.querySelectorAll("button[data-shared]:not(:disabled)")]));
  return first.filter(each => others.every(buttons => buttons.some(other => other.textContent === each.textContent)));
}

function menu() {
  const rows = inHand();
  if (!rows.length) return;
  const [row] = rows, ids = rows.map(idOf), canVerify = rows.length <= MOST && rows.every(each => linkOf(each)?.pathname.startsWith("/ui/t/") && !linkOf(each)?.search && idOf(each).includes("$"));
  const item = (text, shape, run) => make("button", {class: "btn bare", type: "button", onclick: () => { dialog.close(); run(); }}, shape ? icon(shape) : null, text);
  const own = rows.length > 1 ? [] : [...row.querySelectorAll("button:not(.copy), a.btn, summary")].filter(each => each instanceof HTMLElement && !each.matches(":disabled")).map(each =>
    item(each.getAttribute("aria-label") ?? each.textContent, null, () => { /** @type {HTMLElement} */ (each).focus(); /** @type {HTMLElement} */ (each).click(); }));
  // An action that all selected rows have is offered once: it concerns them together, as a plan of their mirror does.
  const same = rows.length < 2 ? [] : sharedButtons(rows).map(each => item(`${each.textContent} (${rows.length} rows)`, null, () => each.click()));
  const orphans = rows.length < 2 ? [] : rows.map(each => /** @type {HTMLAnchorElement | null} */ (each.querySelector("a.btn[href*='/ui/declare?']"))).filter(each => each !== null).flatMap(each => new URL(each.href).searchParams.getAll("location"));
  const link = linkOf(row);
  const dialog = make("dialog", {"aria-label": "Actions", onclose: () => { dialog.remove(); row.focus(); }}, make("div", {class: "menu-head"}, make("strong", {}, rows.length > 1 ? `${rows.length} rows` : name(ids[0]))),
    make("div", {class: "menu-list"}, rows.length === 1 && link ? item("Open", "arrow", () => link.click()) : null, item(ids.length > 1 ? `Copy ${ids.length} ids` : "Copy the id", "copy", () => copy(ids)),
      rows.length === 1 && link ? item("Copy the address", "link", () => copy([link.href])) : null, canVerify ? item(`Verify ${plural(ids.length, "table")} now`, "run", () => verify(ids)) : null, own, same,
      rows.length > 1 && orphans.length === rows.length ? item(`Declare ${plural(orphans.length, "table")}`, "plan", () => navigate(`/ui/declare?${new URLSearchParams(orphans.map(each => ["location", each]))}`)) : null));
  document.body.append(dialog);
  dialog.showModal();
}

/* Handle a key outside of fields. Returns whether it was one of a list. */
export function onListKey(key) {
  const row = current();
  if (key === "j" || (key === "ArrowDown" && row === document.activeElement)) move(1);
  else if (key === "k" || (key === "ArrowUp" && row === document.activeElement)) move(-1);
  else if (key === "x" && row) select(row);
  else if (key === "c" && inHand().length) copy(inHand().map(idOf));
  else if (key === ".") menu();
  else if (key === "Enter" && row && row === document.activeElement) linkOf(row)?.click();
}
