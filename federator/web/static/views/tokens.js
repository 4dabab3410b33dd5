// API tokens: listed, created with a secret that is shown once, revoked.
import {find, get, query, send} from "../api.js";
import {getElement, make, name} from "../dom.js";
import {ago, state} from "../format.js";
import {button, copyButton, empty, more, note, panel, ROLES, table, tableRow} from "../parts.js";
import {announce, attempt} from "../router.js";

const COLUMNS = [["Token", "name"], ["Role"], ["Scopes", "name"], ["State"], ["Created"], ["Expires"], ["Action"]];
const TONES = {active: "ok", expired: "outdated", revoked: "rejected"};
const LIFETIMES = [["30", "30 days"], ["90", "90 days"], ["365", "365 days"], ["", "no end"]];

const day = time => (time ? make("time", {datetime: time, title: time, text: time.slice(0, 10)}) : "never");

/* Revocation is permanent: the first click asks, the second one revokes. */
function revokeButton(token, renew) {
  const asked = button("Revoke", () => {
    if (asked.textContent !== "Revoke") attempt(async () => renew(await send("POST", `/api/v1/tokens/${encodeURIComponent(token.name)}/revoke`)));
    else asked.textContent = "Revoke for good?";
  }, {kind: "danger", "aria-label": `Revoke: ${token.name}`});
  asked.addEventListener("blur", () => { asked.textContent = "Revoke"; });
  return asked;
}

function rowOf(token) {
  const row = tableRow(COLUMNS, [name(token.name), token.role, token.scopes.length ? name(token.scopes.join(", ")) : make("span", {class: "q", text: "nothing"}), state(TONES[token.state], {text: token.state}),
    make("span", {title: `by ${token.created_by}`}, ago(token.created_at)), day(token.expires_at), token.state === "active" ? revokeButton(token, revoked => {
      row.replaceWith(rowOf(revoked));
      announce(`${token.name} is revoked.`);
    }) : null]);
  return row;
}

const field = (label, input) => make("label", {for: input.id}, make("span", {class: "q2", text: label}), input);

function form(sources, created) {
  const title = make("input", {id: "token-name", required: true, maxlength: 100, pattern: "[A-Za-z0-9][A-Za-z0-9._@\\-]*", autocomplete: "off", placeholder: "ci"});
  const role = make("select", {id: "token-role"}, ROLES.map(each => make("option", {value: each, text: each})));
  const scopes = make("textarea", {id: "token-scopes", rows: 2, required: true, placeholder: "* for everything, or one path a line: lake_hive$sales"});
  const lifetime = make("select", {id: "token-lifetime"}, LIFETIMES.map(([value, text]) => make("option", {value, text, selected: value === "90"})));
  const result = make("div", {"aria-live": "polite"}), submit = make("button", {class: "btn main", text: "Create the token"});
  const element = make("form", {class: "pad fields"}, field("Name", title), field("Role", role), field("Scopes", scopes), field("Valid for", lifetime), submit);
  element.addEventListener("submit", event => {
    event.preventDefault();
    attempt(async () => {
      const paths = scopes.value.split("\n").map(line => line.trim()).filter(Boolean), unknown = paths.map(path => path.split("$")[0]).filter(source => source !== "*" && !sources.includes(source));
      const token = await send("POST", "/api/v1/tokens", {name: title.value.trim(), role: role.value, scopes: paths, lifetime_days: lifetime.value ? Number(lifetime.value) : null});
      result.replaceChildren(note("ok", make("p", {}, "The token of ", make("strong", {}, name(token.name)), ". It cannot be shown again:"), make("p", {class: "secret"}, make("code", {text: token.token}), copyButton(token.token, "token")),
        unknown.length ? make("p", {text: `No source ${unknown.join(", ")} is configured: until then the scope covers nothing.`}) : null));
      element.reset();
      created(token);
    });
  });
  return make("details", {}, make("summary", {class: "pad", text: "New token"}), element, result);
}

/* The panel of the tokens. Only an administrator of everything sees them. */
export async function tokensPanel(signal) {
  const [page, sources] = await Promise.all([find("/api/v1/tokens", signal), get("/api/v1/sources", signal)]);
  if (page === null) return panel("Tokens", {}, empty("You may not see these", "They need the role admin and the scope *.", {state: "denied"}));
  const list = table(COLUMNS, [], "Tokens"), body = getElement(list, "tbody"), none = empty("No token yet", "A configured token and sign-ins at an identity provider are not listed.");
  const fill = tokens => {
    body.append(...tokens.map(rowOf));
    list.hidden = !body.children.length;
    none.hidden = !list.hidden;
  };
  fill(page.tokens);
  const following = more(page.next, async cursor => {
    const next = await get(query("/api/v1/tokens", {cursor}), signal);
    fill(next.tokens);
    return next.next;
  });
  return panel("Tokens", {}, form(sources.sources.map(source => source.name), token => fill([token])), list, none, following);
}
