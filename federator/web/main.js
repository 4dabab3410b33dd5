"use strict";
// Which view the address asks for: #/name/argument.

async function route() {
  const mine = ++turn;
  closeStream();
  const [, name = "", ...given] = location.hash.split("/");
  const argument = given.length ? decodeURIComponent(given.join("/")) : undefined;
  const above = {source: "", table: "tree", run: "runs", plan: "plans", declare: "drift"}[name] ?? name;
  for (const entry of document.querySelectorAll("header nav a")) {
    const here = entry.getAttribute("href") === `#/${above}`;
    if (here) entry.setAttribute("aria-current", "page"); else entry.removeAttribute("aria-current");
  }
  say("");
  view.replaceChildren();
  view.setAttribute("aria-busy", "true");
  document.title = argument ? `${argument} · Lance Federator` : "Lance Federator";
  try {
    await (views[name] || (async () => say("there is no such page")))(argument);
  } catch (error) {
    if (mine === turn) say(error.message);
  }
  if (mine === turn) view.removeAttribute("aria-busy");
}

window.addEventListener("hashchange", async () => {
  await route();
  // Who walks by keyboard, or listens, begins at the new content.
  if (!view.contains(document.activeElement)) view.focus();
});
route();
