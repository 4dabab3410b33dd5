// The dialog that selects a snapshot: the present, the end of a run, or a time.
import {asOf, get, query} from "../api.js";
import {make} from "../dom.js";
import {ago, clock, words} from "../format.js";
import {button, empty, more} from "../parts.js";
import {setMoment} from "../router.js";

const item = (dialog, snapshot) => button("", () => { dialog.close(); setMoment(snapshot.run); }, {kind: "bare", "data-run": snapshot.run, "aria-current": asOf() === snapshot.run ? "true" : null});

export async function chooseSnapshot() {
  const close = () => dialog.close(), list = make("div", {class: "menu-list"});
  const time = make("input", {type: "datetime-local", "aria-label": "A time", required: true, max: new Date().toISOString().slice(0, 16)});
  const form = make("form", {}, time, make("button", {class: "btn", text: "Show"}));
  form.addEventListener("submit", event => {
    event.preventDefault();
    close();
    setMoment(new Date(time.value).toISOString());
  });
  const dialog = make("dialog", {"aria-label": "Snapshot", onclose: () => dialog.remove()}, make("div", {class: "menu-head"}, make("strong", {text: "Show the state of"}), form), list);
  document.body.append(dialog);
  dialog.showModal();
  const draw = snapshots => snapshots.map(snapshot => {
    const entry = item(dialog, snapshot);
    entry.append(`${clock(snapshot.at)}, after ${words(snapshot.kind)}`, ago(snapshot.at));
    return entry;
  });
  const {snapshots, next} = await get("/api/v1/snapshots?limit=50");
  const following = more(next, async cursor => {
    const page = await get(query("/api/v1/snapshots", {limit: 50, cursor}));
    following.before(...draw(page.snapshots));
    return page.next;
  });
  list.append(button("The present", () => { close(); setMoment(""); }, {kind: "bare", shape: "clock", "aria-current": asOf() ? null : "true"}),
    ...snapshots.length ? draw(snapshots) : [empty("No crawl yet", "The end of each run that reads or changes a catalog can be selected.")], following);
}
