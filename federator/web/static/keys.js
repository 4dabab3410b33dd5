// The views that navigation and palette lead to, the keys of the page, and the list of them. Single characters can be turned off (WCAG 2.1.4).
import {around, make} from "./dom.js";

/**
 * A view of the page. `shape` is its icon.
 * @typedef {{shape: string, label: string, address: string, key?: string}} View  The address is below /ui; the key follows `g`.
 */
/** @type {View[]} */
export const VIEWS = [
  {shape: "overview", label: "Overview", address: "", key: "o"}, {shape: "search", label: "Search", address: "search", key: "s"},
  {shape: "mirror", label: "Mirrors", address: "mirrors", key: "m"}, {shape: "plan", label: "Plans", address: "plans", key: "p"},
  {shape: "run", label: "Runs", address: "runs", key: "r"}, {shape: "drift", label: "Drift", address: "drift", key: "d"},
  {shape: "dataset", label: "Datasets", address: "datasets"}, {shape: "changes", label: "Changes", address: "changes"}];
/**
 * The views at the foot of the navigation.
 * @type {View[]}
 */
export const FOOT_VIEWS = [{shape: "audit", label: "Audit", address: "audit"}, {shape: "report", label: "Reports", address: "reports"}, {shape: "settings", label: "Settings", address: "settings"}];

const STORED = "federator-single-keys";
/** @type {(view: View) => [string, string]} */
const keyOf = ({key, label}) => [`g ${key}`, label.toLowerCase()];
/** @type {[string, string][]} */
const SINGLE = [["/", "search or jump to"], ...VIEWS.filter(view => view.key).map(keyOf), ["g t", "tree"],
  ["[", "close or open the navigation"], ["j", "next row of a list"], ["k", "previous row"], ["x", "select the row"], ["c", "copy the id of the row, or those of the selected rows"],
  [".", "actions of the row, or of the selected rows"], ["?", "these keys"]];
/** @type {[string, string][]} */
const OTHERS = [["Ctrl K", "search or jump to"], ["↑ ↓", "move in the tree, in results and in the palette"], ["← →", "fold and unfold in the tree; change the tab of a table"],
  ["Tab", "look inside a source or namespace, in the palette"], ["Enter", "open"], ["Esc", "close"]];

const areOn = () => localStorage.getItem(STORED) !== "off";

/* Whether a pressed key is a shortcut: a single character outside of fields and dialogs. */
export const isShortcut = event => areOn() && !event.ctrlKey && !event.metaKey && !event.altKey && !around(event, "input, textarea, select, dialog");

const listed = keys => keys.flatMap(([key, text]) => [make("dt", {}, key.split(" ").map(part => make("kbd", {text: part}))), make("dd", {text})]);

export function showKeys() {
  const single = make("input", {type: "checkbox", onchange: () => localStorage.setItem(STORED, single.checked ? "on" : "off")});
  single.checked = areOn();
  const dialog = make("dialog", {class: "keys", "aria-labelledby": "keys-title", onclose: () => dialog.remove()}, make("form", {class: "stack", method: "dialog"},
    make("h2", {class: "big", id: "keys-title", text: "Keys"}), make("dl", {class: "pairs", tabindex: "0"}, listed(OTHERS), listed(SINGLE)),
    make("label", {class: "check"}, single, " Keys of a single character"), make("button", {class: "btn", text: "Close"})));
  document.body.append(dialog);
  dialog.showModal();
}
