// Tabs of a view. The chosen one is in the address; its content is built when it is shown.
import {make} from "../dom.js";

export function tabs(label, views, chosen) {
  const panels = make("div", {class: "tabpanel", role: "tabpanel", id: "tabpanel", tabindex: "0"});
  const list = make("div", {class: "tabs", role: "tablist", "aria-label": label});
  const choose = (view, focus = false) => {
    for (const tab of /** @type {HTMLCollectionOf<HTMLElement>} */ (list.children)) {
      const current = tab.dataset.tab === view.id;
      tab.setAttribute("aria-selected", String(current));
      tab.tabIndex = current ? 0 : -1;
      if (current && focus) tab.focus();
      // On a phone, the chosen tab may be beside the screen. The list has its place after this task.
      if (current) setTimeout(() => { list.scrollLeft += tab.getBoundingClientRect().left - list.getBoundingClientRect().left - 48; });
    }
    panels.setAttribute("aria-label", view.title);
    panels.replaceChildren(...view.content().filter(Boolean));
  };
  const keep = view => {
    const address = new URL(location.href);
    address.searchParams.set("tab", view.id);
    history.replaceState(history.state, "", address);
  };
  list.append(...views.map(view => make("button", {type: "button", role: "tab", "data-tab": view.id, "aria-controls": "tabpanel",
    onclick: () => { choose(view); keep(view); }}, view.title, view.badge ? make("b", {text: view.badge}) : null)));
  list.addEventListener("keydown", event => {
    const step = {ArrowRight: 1, ArrowLeft: -1}[event.key];
    if (!step) return;
    const at = views.findIndex(view => view.id === /** @type {HTMLElement} */ (document.activeElement).dataset.tab), next = views[(at + step + views.length) % views.length];
    choose(next, true);
    keep(next);
  });
  choose(views.find(view => view.id === chosen) ?? views[0]);
  return [list, panels];
}
