"use strict";
/* Gives life to a page: its tables, its figures, and newer content where it watches a run. */
(() => {
  const { element, button, copy, readAddress, drawTable, sortPrinted, drawFigure, hideTip, print } = klr;

  /* A figure is drawn when it comes into sight, and all of them before the page is printed. */
  const waiting = new Set();
  const draw = (figure) => {
    if (waiting.delete(figure)) {
      seen.unobserve(figure);
      drawFigure(figure);
    }
  };
  const seen = new IntersectionObserver(
    (entries) => {
      for (const entry of entries) if (entry.isIntersecting) draw(entry.target);
    },
    { rootMargin: "300px" },
  );
  const content = document.getElementById("content");

  /* Adds a filter of words to a list of cards. */
  const FEW = 12;
  const addFilter = (list) => {
    const cards = [...list.children],
      status = element("span", { class: "count", role: "status" });
    if (cards.length <= FEW) return;
    const show = () => {
      const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
      for (const card of cards) {
        const text = card.textContent.toLowerCase();
        card.hidden = !words.every((word) => text.includes(word));
      }
      status.textContent = `${cards.filter((card) => !card.hidden).length} of ${cards.length}`;
    };
    const filter = element("input", {
      type: "search",
      placeholder: "words, such as budget magic",
      "aria-label": "Filter " + list.dataset.filter,
      oninput: show,
    });
    list.before(element("div", { class: "tools" }, filter, status));
    show();
  };

  /* Gives life to what the page holds; figures of these names are drawn at once. */
  const begin = (drawn) => {
    klr.data = JSON.parse(document.getElementById("data")?.textContent ?? '{"tables":{},"plots":{},"verdicts":{}}');
    klr.redrawn.length = 0;
    for (const place of content.querySelectorAll(".data-table")) {
      drawTable(place, place.dataset.table);
      place.closest("details").open ||= location.hash.includes(place.dataset.table + ".");
    }
    for (const table of content.querySelectorAll(".sortable")) sortPrinted(table);
    for (const cards of content.querySelectorAll(".cards")) addFilter(cards);
    for (const place of content.querySelectorAll(".command")) {
      const text = place.textContent.trim();
      const press = button("Copy", async () => {
        press.textContent = (await copy(text)) ? "Copied" : "Not copied";
        setTimeout(() => {
          press.textContent = "Copy";
        }, 1500);
      });
      place.append(press);
    }
    waiting.clear();
    for (const figure of content.querySelectorAll(".plot")) {
      waiting.add(figure);
      seen.observe(figure);
      if (drawn.has(figure.dataset.plot)) draw(figure);
    }
  };

  /* Parts of the content by a name that they keep when others are added: their label or text, and a number if several have it. */
  const named = (selector) => {
    const parts = new Map();
    for (const part of content.querySelectorAll(selector)) {
      const text = part.matches("button, summary") ? part : part.querySelector(":scope > summary");
      const label = `${part.tagName} ${part.getAttribute("aria-label") ?? text?.textContent ?? ""}`;
      let name = label;
      for (let again = 2; parts.has(name); again += 1) name = `${label} ${again}`;
      parts.set(name, part);
    }
    return parts;
  };

  /* Puts newer content in the place of what is there; what is scrolled, unfolded or drawn stays so. */
  const replace = (html, message) => {
    const place = document.createElement("template");
    place.innerHTML = html;
    if (message) {
      const line = document.createElement("p");
      line.className = "note";
      line.textContent = message;
      place.content.append(line);
    }
    const scrolled = new Map([...named(".scroll")].map(([name, part]) => [name, part.scrollLeft]));
    const unfolded = new Map([...named("details")].map(([name, part]) => [name, part.open]));
    const controls = "button, input, summary, .scroll";
    const focused = [...named(controls)].find(([, part]) => part === document.activeElement)?.[0];
    const drawn = new Set([...content.querySelectorAll(".plot:has(.panel)")].map((figure) => figure.dataset.plot));
    const down = scrollY;
    hideTip();
    content.style.minHeight = `${content.offsetHeight}px`;
    content.replaceChildren(place.content);
    begin(drawn);
    for (const [name, part] of named(".scroll")) part.scrollLeft = scrolled.get(name) ?? 0;
    for (const [name, part] of named("details")) part.open = unfolded.get(name) ?? part.open;
    named(controls).get(focused)?.focus({ preventScroll: true });
    content.style.minHeight = "";
    scrollTo({ top: down, behavior: "instant" });
  };

  /* A page that watches a run is told of newer results.  Their HTML is escaped by who made it, a message is not. */
  let fetching = false;
  let version = null;
  document.addEventListener("klr-results", async (event) => {
    if (fetching || event.detail === version) return;
    fetching = true;
    try {
      const answer = await fetch("/results.json", { cache: "no-store" });
      if (answer.ok) {
        const results = await answer.json();
        replace(results.html, results.message);
        version = results.version;
      }
    } catch {
      // its header says that there is no answer, and asks again
    } finally {
      fetching = false;
    }
  });
  /* Places on the page are reached without their names in the address, which holds what was chosen. */
  document.addEventListener("click", (event) => {
    const link = event.target.closest('a[href^="#"]');
    const target = link && document.getElementById(link.getAttribute("href").slice(1));
    if (!target) return;
    event.preventDefault();
    target.scrollIntoView();
    target.setAttribute("tabindex", "-1");
    target.focus({ preventScroll: true });
  });
  addEventListener("beforeprint", () => {
    for (const figure of [...waiting]) draw(figure);
    print(true);
  });
  addEventListener("afterprint", () => print(false));
  document.addEventListener("klr-theme", () => {
    for (const redraw of klr.redrawn) redraw();
  });
  addEventListener("hashchange", () => {
    if (readAddress()) for (const redraw of klr.redrawn) redraw();
  });
  readAddress();
  begin(new Set());
  document.documentElement.dataset.ready = "true";
  performance.mark("ready");
})();
