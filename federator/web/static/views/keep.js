// What a person has in hand while a view is shown again: the row with the focus, selected rows, what is unfolded, typed values.
import {getElement, make} from "../dom.js";
import {plural} from "../format.js";
import {button} from "../parts.js";

export const ROWS = "tbody tr, .rows > li, .hit, .delta";

/* The link of a row, which names its object. @param {HTMLElement} row @returns {HTMLAnchorElement | null} */
export const linkOf = row => row.querySelector("a[href^='/ui/']");

const labelOf = element => element.parentElement?.closest("[aria-label]")?.getAttribute("aria-label") ?? "";

/* Number what has the same key, and return all by their keys. */
function numbered(elements, keyOf) {
  const seen = new Map(), keyed = new Map();
  for (const element of elements) {
    const key = keyOf(element), number = seen.get(key) ?? 0;
    seen.set(key, number + 1);
    keyed.set(`${key}\n${number}`, element);
  }
  return keyed;
}

/* The rows of a view by what they are about: their key, their object, or their first text. @returns {Map<string, HTMLElement>} */
const rowsOf = root => numbered(root.querySelectorAll(ROWS), row => `${labelOf(row)}\n${row.dataset.key ?? linkOf(row)?.pathname ?? row.firstElementChild?.textContent}`);

const keyIn = (keyed, element) => [...keyed].find(([, each]) => each === element)?.[0];

/* What an element is called apart from its numbers, which change. */
const nameOf = element => element.id || element.getAttribute("href") || element.getAttribute("aria-label") || [...element.childNodes].find(node => node.nodeType === Node.TEXT_NODE)?.data || element.textContent;

/** The operated elements of a row, or of the view outside of its rows. @param {Element} root @param {string} selector @param {Element | null} within @returns {Map<string, HTMLElement>} */
const operated = (root, selector, within) => numbered([...root.querySelectorAll(selector)].filter(element => element.closest(ROWS) === within), element => `${labelOf(element)}\n${element.tagName} ${nameOf(element)}`);

const FOCUSABLE = "a[href], button, summary, input, select, textarea, [tabindex]";
const FIELDS = "input[id]:not([type=password]), select[id]:not([id^=filter-]), textarea[id]";
const FILTERS = "[id^=filter-]";

const isChanged = field => (field.type === "checkbox" ? field.checked !== field.defaultChecked
  : field.options ? [...field.options].some((option, at) => option.selected !== ([...field.options].some(each => each.defaultSelected) ? option.defaultSelected : at === 0)) : field.value !== field.defaultValue);

/* Select a row, or end that. A word says so to those who do not see the colour. */
export function pick(row, picked) {
  row.classList.toggle("picked", picked);
  row.querySelector(":scope .picked-word")?.remove();
  if (picked) (row.querySelector("td") ?? row).append(make("span", {class: "only-listeners picked-word", text: " (selected)"}));
}

export function focusRow(row) {
  row.tabIndex = -1;
  row.focus({preventScroll: true});
}

/** What can be unfolded in a row, or in the view outside of its rows. @returns {[string, HTMLDetailsElement][]} */
const folds = (root, within) => [...operated(root, "details > summary", within)].map(([key, summary]) => [key, /** @type {HTMLDetailsElement} */ (summary.parentElement)]);

/* Read what is in hand; the returned function gives it to the same view after it was shown again. Filters that were used (`isFiltered`) have
   the value of the address. */
function takeInHand(root, isFiltered = false) {
  const rows = rowsOf(root), active = document.activeElement, row = root.contains(active) ? active?.closest(ROWS) ?? null : null, rowKey = row && keyIn(rows, row);
  const field = active instanceof HTMLInputElement ? active : null, caret = field?.selectionStart ?? null;
  const inside = root.contains(active) && active !== row ? keyIn(operated(row ?? root, FOCUSABLE, row), active) : null;
  const picked = [...rows].filter(([, each]) => each.classList.contains("picked")).map(([key]) => key), order = [...rows.keys()];
  const opened = [null, ...rows.keys()].map(key => [key, folds(rows.get(key) ?? root, rows.get(key) ?? null).map(([name, details]) => [name, details.open])]).filter(([, list]) => list.length);
  const typed = [...root.querySelectorAll(FIELDS)].filter(field => isChanged(field) && !(isFiltered && field.matches(FILTERS))).map(field => [field.id, field.value, field.checked]);
  const running = [...root.querySelectorAll("[data-kept]")].filter(element => element.hasChildNodes());
  return () => {
    const now = rowsOf(root);
    for (const key of picked) if (now.has(key)) pick(now.get(key), true);
    for (const [key, list] of opened) {
      if (key !== null && !now.has(key)) continue;
      const were = new Map(list);
      for (const [name, details] of folds(now.get(key) ?? root, now.get(key) ?? null)) details.open = were.get(name) ?? details.open;
    }
    for (const [id, value, checked] of typed) {
      const field = root.querySelector(`#${CSS.escape(id)}`);
      if (!field || (field.options && ![...field.options].some(option => option.value === value))) continue;
      Object.assign(field, field.type === "checkbox" ? {checked} : {value});
      field.dispatchEvent(new Event("change"));
    }
    // What follows a request goes on in its own element.
    for (const element of running) root.querySelector(`#${CSS.escape(element.id)}`)?.replaceWith(element);
    if (rowKey && !now.has(rowKey)) {
      // The row left the list: the one after it has the focus, or the one before it.
      const at = order.indexOf(rowKey), near = [...order.slice(at), ...order.slice(0, at).reverse()].find(key => now.has(key));
      if (near) focusRow(now.get(near));
    } else if (rowKey || inside) {
      const holder = rowKey ? now.get(rowKey) : null, part = inside && operated(holder ?? root, FOCUSABLE, holder).get(inside);
      if (part) {
        part.focus({preventScroll: true});
        if (field && caret !== null && part instanceof HTMLInputElement) {
          // Set while it has the focus: the browser knows then that Enter applies it.
          part.value = field.value;
          part.setSelectionRange(caret, caret);
        }
      } else if (holder) focusRow(holder);
    }
  };
}

/* The text of an element with exact times instead of ages, which change by themselves. */
function gist(element) {
  const copy = element.cloneNode(true);
  for (const time of copy.querySelectorAll("time")) time.replaceWith(time.dateTime);
  for (const word of copy.querySelectorAll(".picked-word, .newer")) word.remove();
  return copy.textContent;
}

const selects = element => { const selection = getSelection(); return Boolean(selection && !selection.isCollapsed && selection.containsNode(element, true)); };

/* Whether a person works in the rows of a view, so that they must not move. */
const isAtWork = root => root.scrollTop > 0 || Boolean(root.querySelector(`.picked, [data-extended], :is(${ROWS}):is(:hover, :focus-within)`)) || selects(root);

function highlight(row) {
  row.classList.add("changed");
  setTimeout(() => row.classList.remove("changed"), 1000);
}

/* Rows get their new values where they are. Returns how many rows are new. */
function updateRows(before, after) {
  for (const [key, row] of before) {
    const next = after.get(key);
    if (!next || selects(row) || gist(row) === gist(next)) continue;
    const giveBack = takeInHand(row);
    const picked = row.classList.contains("picked");
    row.replaceChildren(...next.childNodes);
    pick(row, picked);
    giveBack();
    highlight(row);
  }
  return [...after.keys()].filter(key => !before.has(key)).length;
}

/* Show a view again in `root`, with the same filters or with others. A list in which somebody works keeps its rows if there is a `show`, and a notice
   shows it anew by that. */
export function showAgain(root, nodes, {show, isFiltered}) {
  const next = make("div", {}, nodes), before = rowsOf(root), after = rowsOf(next), isSame = gist(root) === gist(next);
  const moves = [...before.keys()].join("\n\n") !== [...after.keys()].join("\n\n");
  if (show && isAtWork(root) && (moves || selects(root))) {
    if (isSame) return;
    const added = updateRows(before, after);
    if (gist(root) === gist(next) || (root.querySelector(".newer") && !added)) return;
    root.querySelector(".newer")?.remove();
    root.prepend(make("div", {class: "newer", role: "status"}, button(added ? `${added} new` : "This view has changed", show, {kind: "main", shape: "arrow"})));
    return;
  }
  const changed = isSame || isFiltered ? [] : [...after].filter(([key, row]) => before.has(key) && gist(before.get(key)) !== gist(row)).map(([, row]) => row);
  const isNoticed = Boolean(root.querySelector(".newer :focus")), giveBack = takeInHand(root, isFiltered);
  // A field that is removed while somebody types in it says that it has changed.
  const ignore = event => event.stopPropagation();
  root.addEventListener("change", ignore, true);
  root.replaceChildren(...next.childNodes);
  root.removeEventListener("change", ignore, true);
  giveBack();
  changed.forEach(highlight);
  if (!isNoticed) return;
  const added = [...after].find(([key]) => !before.has(key))?.[1] ?? [...after.values()][0];
  if (!added) return getElement(root, "h1").focus();
  focusRow(added);
  added.scrollIntoView({block: "nearest"});
}
