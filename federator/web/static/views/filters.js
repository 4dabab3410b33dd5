// Filters of a view, which are fields of its address: chips, and lists of values.
import {make} from "../dom.js";
import {count} from "../format.js";
import {setQuery} from "../router.js";

/**
 * @param {string} title
 * @param {[string, string, number?][]} choices value in the address, its text, and how many there are
 * @param {string | null} chosen
 * @param {string} field of the address
 */
export const chips = (title, choices, chosen, field) => make("div", {class: "chips bar", role: "group", "aria-label": title}, choices.map(([value, text, number]) =>
  make("button", {type: "button", class: "chip", "aria-pressed": String((chosen ?? "") === value), onclick: () => setQuery({[field]: value})}, text, number === undefined ? null : make("small", {text: count(number)}))));

/**
 * @param {string} title
 * @param {[string, string][]} choices value in the address, and its text
 * @param {string | null} chosen
 * @param {string} field of the address
 */
export function choice(title, choices, chosen, field) {
  const select = make("select", {id: `filter-${field}`, "aria-label": title, "data-keep-focus": true}, make("option", {value: "", text: `${title}: all`}),
    choices.map(([value, text]) => make("option", {value, text, selected: value === chosen})));
  select.addEventListener("change", () => setQuery({[field]: select.value}));
  return select;
}

/**
 * A text that a field of the address has; it is applied with Enter, or when the focus leaves it.
 * @param {string} title
 * @param {string | null} value
 * @param {string} field of the address
 */
export function entry(title, value, field) {
  const input = make("input", {type: "search", id: `filter-${field}`, "aria-label": title, placeholder: title, value: value ?? "", maxlength: 4000, autocomplete: "off", "data-keep-focus": true});
  input.addEventListener("change", () => setQuery({[field]: input.value.trim()}));
  return input;
}
