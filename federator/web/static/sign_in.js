// The credential of this tab, and the form that asks for one. Other ways to sign in are added to `METHODS`.
import {icon, make} from "./dom.js";

const KEY = "federator-token";
let dialog = null, waiting = null;

const LOGIN = /** @type {HTMLMetaElement | null} */ (document.querySelector("meta[name=sign-in]"))?.content;

/* Ways to sign in besides a token: functions that return an element for the form. The link leads back to what is shown now. */
const METHODS = LOGIN ? [() => make("a", {class: "btn wide", href: `${LOGIN}?${new URLSearchParams({return_to: location.pathname + location.search})}`, text: "Sign in with the company account"})] : [];

// Sent with every write; only a person who signed in at the identity provider has one.
let csrf = null;

export const csrfToken = () => csrf;

// Kept for the tab only: it is gone when the tab is closed, and no other site and no other tab reads it.
export const currentToken = () => sessionStorage.getItem(KEY);

/* Remember who is signed in: the response of /api/v1/me. */
export function setPerson(me) {
  csrf = me.csrf_token;
}

export async function signOut() {
  sessionStorage.removeItem(KEY);
  if (csrf) {
    const response = await fetch("/auth/logout", {method: "POST", headers: {"x-csrf-token": csrf}});
    if (!response.ok && response.status !== 401) throw new Error("the session could not be ended");
  }
  location.reload();
}

/* Resolve when the principal has entered a token. The address and what was typed stay as they are. */
export function requestSignIn(reason) {
  waiting ??= new Promise(resolve => showForm(reason, resolve)).finally(() => { waiting = null; });
  return waiting;
}

function showForm(reason, resolve) {
  const input = make("input", {type: "password", id: "token", autocomplete: "current-password", required: true, placeholder: "lft_…"});
  const form = make("form", {class: "stack", method: "dialog"}, make("h2", {class: "big", text: "Sign in"}),
    make("p", {class: "q", role: "alert", text: currentToken() ? reason : "This service needs a token. An admin creates one with: federator token create"}),
    make("label", {for: "token"}, make("span", {class: "q2", text: "Token"}), input),
    make("button", {class: "btn main wide"}, icon("user"), "Sign in"), ...METHODS.map(method => method()));
  dialog?.remove();
  dialog = make("dialog", {class: "sign-in", "aria-label": "Sign in"}, form);
  dialog.addEventListener("cancel", event => event.preventDefault());
  form.addEventListener("submit", () => {
    sessionStorage.setItem(KEY, input.value.trim());
    dialog.remove();
    resolve();
  });
  document.body.append(dialog);
  dialog.showModal();
}
