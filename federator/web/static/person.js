// Who uses the page, and what the role allows.
import {get} from "./api.js";

/** The roles, each of which may do what those before it may. */
export const ROLES = ["viewer", "operator", "writer", "admin"];
let reading = null;

/** The response of /api/v1/me, read once. @returns {Promise<any>} */
export function readPerson() {
  reading ??= get("/api/v1/me").catch(error => {
    reading = null;
    throw error;
  });
  return reading;
}

/**
 * Attributes of a button that needs a role: disabled with the reason, or none.
 * @param {{name: string, role: string, scopes: string[]}} person
 * @param {string} role
 * @param {{everything?: boolean}} [how] `everything`: it also needs the scope *
 */
export function unlessAllowed(person, role, {everything = false} = {}) {
  if (ROLES.indexOf(person.role) >= ROLES.indexOf(role) && (!everything || person.scopes.includes("*"))) return {};
  return {disabled: true, title: `Needs the role ${role}${everything ? " and the scope *" : ""}; you have the role ${person.role}`};
}
