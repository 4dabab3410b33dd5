// The heading of an object of the tree.
import {icon, lastName, make, name} from "../dom.js";

export const heading = (shape, id, ...more) => make("div", {class: "title"}, icon(shape), make("h1", {tabindex: "-1"}, name(lastName(id))), ...more);
