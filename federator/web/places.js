"use strict";
// The sources with their freshness, and what has drifted.

views[""] = async () => {
  const found = (await ask("/api/v1/sources")).sources;
  const rows = found.map(source => {
    const fresh = source.freshness;
    const short = source.failed_namespaces ? link("source", source.name, source.failed_namespaces) : source.failed_namespaces;
    return [link("source", source.name), state(fresh.state), ago(fresh.crawled_at), source.tables, source.namespaces, short, source.impl, fresh.revision, fresh.message];
  });
  const columns = [["Source"], ["State"], ["Crawled"], ["Tables", "n"], ["Namespaces", "n"], ["Not read", "n"], ["Kind"], ["Revision", "n"], ["Note", "long"]];
  view.append(make("h2", {text: "Sources"}), found.length ? table(columns, rows, "Sources") : make("p", {text: "No source is configured."}));
};

views.source = async name => {
  const key = encodeURIComponent(name);
  const [source, short] = await Promise.all([ask(`/api/v1/sources/${key}`), ask(`/api/v1/sources/${key}/coverage?short=true`).catch(() => null)]);
  const fresh = source.freshness;
  const rows = short ? short.namespaces.map(one => [one.namespace, state(one.presence), state(one.detail), one.presence_reason || one.detail_reason]) : [];
  const carried = source.carried_namespaces;
  view.append(make("h2", {text: name}), source.configured ? make("p", {}, crawl("Crawl", {sources: [name]}), carried ? crawl("Crawl in full", {sources: [name], full: true}) : null) : "", pairs([["kind", source.impl], ["state", state(fresh.state)], ["note", fresh.message], ["tables", source.tables], ["namespaces", source.namespaces],
    ["not read again", carried ? `${carried}: the catalog's feed of changes did not name them` : null], ["revision", fresh.revision], ["crawled", ago(fresh.crawled_at)], ["changed", ago(fresh.published_at)], ["schedule", source.schedule || "by hand"]]),
    section("Namespaces that were not read in full", rows.length ? table([["Namespace", "long"], ["Listed"], ["Described"], ["Why", "long"]], rows, "Not read in full")
      : make("p", {class: "quiet", text: short ? carried ? "None: what the last crawl did not read again, it knew." : "None: the last crawl read all of them." : "It was never crawled."}), short && short.next ? make("p", {class: "quiet", text: "and more"}) : null));
};

function driftTable(drift) {
  return table([["Severity"], ["What"], ["Table", "long"], ["Differs from", "long"], ["Detail", "long"], ["Since"]], drift.map(one =>
    [state(one.severity), one.kind.replaceAll("_", " "), one.kind === "orphan" ? link("declare", one.subject) : link("table", one.subject), one.other, one.detail, ago(one.first_seen)]), "Drift");
}

views.drift = async severity => {
  const choose = make("select", {id: "severity", onchange: () => { location.hash = choose.value ? `#/drift/${choose.value}` : "#/drift"; }},
    ...["", "high", "medium", "low"].map(each => make("option", {value: each, text: each || "all", selected: each === (severity || "")})));
  const page = await ask(query("/api/v1/drift", {severity, limit: 100}));
  const list = page.drift.length ? driftTable(page.drift) : make("p", {class: "quiet", text: "Nothing has drifted, as of the last run."});
  const show = cursor => more(cursor, async (at, button) => {
    const following = await ask(query("/api/v1/drift", {severity, limit: 100, cursor: at}));
    list.querySelector("tbody").append(...driftTable(following.drift).querySelectorAll("tbody tr"));
    button.replaceWith(show(following.next) || "");
  });
  view.append(make("h2", {text: "Drift"}), make("form", {}, make("div", {}, make("label", {for: "severity", text: "Severity"}), choose)), list, show(page.next) || "", freshness(page.freshness));
};

/* A physical table that no catalog declares: asks the worker to plan its declaration, and waits for the plan. */
views.declare = async place => {
  const known = (await ask("/api/v1/sources")).sources.filter(source => source.configured);
  const into = make("select", {id: "into"}, ...known.map(source => make("option", {value: source.name, text: source.name})));
  const name = make("input", {id: "as", maxlength: 4000, size: 28, placeholder: "as its directories are called", autocomplete: "off"});
  const send = make("button", {class: "main", text: "Plan the declaration"});
  const form = make("form", {}, make("div", {}, make("label", {for: "into", text: "Into"}), into), make("div", {}, make("label", {for: "as", text: "As (sales$orders)"}), name), send);
  const made = make("div", {"aria-live": "polite"});
  form.addEventListener("submit", event => { event.preventDefault(); send.disabled = true; loud(planned(place, into.value, name.value.trim(), made)).finally(() => { send.disabled = false; }); });
  view.append(make("h2", {text: "Declare a table"}), pairs([["location", place]]),
    make("p", {class: "quiet", text: "The worker opens the place and makes a plan. Nothing is written before the plan is applied, and what is declared is yours: no mirror changes it."}), form, made);
};

async function planned(place, into, name, made) {
  say("");
  let asked = await ask("/api/v1/declarations", {method: "POST", headers: {"content-type": "application/json"}, body: JSON.stringify({places: [place], into: [into], name: name || null})});
  made.replaceChildren(make("p", {class: "quiet", text: "Asked for: it is made when the worker is free."}));
  while (["queued", "running"].includes(asked.state)) {
    await new Promise(wake => setTimeout(wake, 1000));
    asked = await ask(`/api/v1/requests/${asked.id}`);
  }
  const found = asked.run_id ? (await ask(query("/api/v1/plans", {run: asked.run_id}))).plans : [];
  made.replaceChildren(found.length ? make("p", {}, "Planned: ", link("plan", found[0].digest, found[0].digest.slice(0, 12)), make("span", {class: "note quiet", text: counted(found[0].changes)}))
    : make("p", {class: "bad"}, "No plan was made: ", asked.run_id ? link("run", asked.run_id, "the run says why") : asked.state));
}
