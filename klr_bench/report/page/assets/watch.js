"use strict";
// Requests the state of the run every two seconds, and passes the version of the results to the page by the event
// "klr-results".  Every text is set as text, never as markup.
(() => {
  const EVERY_MS = 2000;
  const PATIENCE_MS = 10000;
  const SAID = {
    running: "running",
    finished: "finished",
    interrupted: "stopped",
    killed: "killed",
    silent: "no update",
    none: "no run",
    unknown: "unknown",
    gone: "no answer from the watcher",
  };
  const header = document.getElementById("klr-watch");
  const part = (name) => header.querySelector(`[data-part="${name}"]`);
  let ended = false;

  function write(element, text) {
    if (element.textContent !== text) element.textContent = text;
  }

  function list(name, title, entries) {
    const details = part(name);
    details.hidden = entries.length === 0;
    write(details.querySelector("summary"), title);
    const items = details.querySelector("ul");
    entries.forEach(([what, aside], place) => {
      const item = items.children[place] ?? items.appendChild(document.createElement("li"));
      if (!item.firstChild) item.append(document.createTextNode(""), " ", document.createElement("span"));
      if (item.firstChild.data !== what) item.firstChild.data = what;
      write(item.lastChild, aside);
    });
    while (items.children.length > entries.length) items.lastChild.remove();
  }

  function stands(standing) {
    header.dataset.standing = standing;
    write(part("standing"), SAID[standing] ?? standing);
  }

  function show(state) {
    stands(state.standing);
    write(part("experiment"), state.experiment);
    write(part("sentence"), state.sentence);
    write(part("problem"), state.problem);
    part("problem").hidden = !state.problem;
    const count = (number) => (number ?? 0).toLocaleString("en");
    const numbers = Object.entries(
      state.total === undefined
        ? {}
        : {
            "cells done": `${count(state.done)} of ${count(state.total)}`,
            "cells failed": count(state.failed),
            "tasks running": count(state.n_running),
            "time left": state.left,
          },
    );
    const shown = part("numbers");
    if (shown.children.length !== numbers.length) {
      shown.replaceChildren(
        ...numbers.map(() => {
          const pair = document.createElement("div");
          pair.append(document.createElement("dt"), document.createElement("dd"));
          return pair;
        }),
      );
    }
    numbers.forEach(([name, value], place) => {
      write(shown.children[place].firstChild, name);
      write(shown.children[place].lastChild, value);
    });
    const bar = part("bar");
    bar.hidden = !state.total;
    bar.max = state.total || 1;
    bar.value = state.done || 0;
    const running = (state.running ?? []).map(([what, since]) => [what, `for ${since}`]);
    const failures = (state.failures ?? []).map(([what, status, message]) => [`${status}: ${what}`, message]);
    const withRest = (entries, total) =>
      total > entries.length ? [...entries, [`and ${count(total - entries.length)} more`, ""]] : entries;
    list("at-work", `Running now (${count(state.n_running)})`, withRest(running, state.n_running));
    list("failures", `Failed (${count(state.failed)})`, withRest(failures, state.failed));
    document.title = state.total ? `${state.done}/${state.total} ${state.experiment}` : state.experiment;
    ended = ["finished", "interrupted", "killed"].includes(state.standing);
    document.dispatchEvent(new CustomEvent("klr-results", { detail: state.version }));
  }

  async function ask() {
    try {
      const answer = await fetch("/state.json", { cache: "no-store", signal: AbortSignal.timeout(PATIENCE_MS) });
      if (!answer.ok) throw new Error(`status ${answer.status}`);
      show(await answer.json());
    } catch {
      if (!ended) {
        stands("gone");
        list("at-work", "", []);
      }
    }
    setTimeout(ask, EVERY_MS);
  }

  ask();
})();
