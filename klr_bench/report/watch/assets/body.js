"use strict";
// Fetches the table when the header tells another version than that of the table here, and replaces what is different:
// what is scrolled or unfolded stays so.
(() => {
  const body = document.getElementById("klr-body");
  let fetching = false;

  function replaced(old, fresh) {
    const scrolled = [...old.querySelectorAll(".scroll")].map((one) => [one.scrollLeft, one === document.activeElement]);
    const unfolded = [...old.querySelectorAll("details")].map((one) => one.open);
    fresh.querySelectorAll("details").forEach((one, place) => { one.open = unfolded[place] ?? false; });
    old.replaceWith(fresh);
    fresh.querySelectorAll(".scroll").forEach((one, place) => {
      const [left, focused] = scrolled[place] ?? [0, false];
      one.scrollLeft = left;
      if (focused) one.focus({ preventScroll: true });
    });
  }

  function same(one, other) {
    const copy = one.cloneNode(true);
    copy.querySelectorAll("details").forEach((details) => { details.open = false; });
    return copy.isEqualNode(other);
  }

  function replace(html) {
    const place = document.createElement("template");
    place.innerHTML = html;
    const [old, fresh] = [[...body.children], [...place.content.children]];
    fresh.forEach((element, number) => {
      if (!old[number]) body.append(element);
      else if (!same(old[number], element)) replaced(old[number], element);
    });
    old.slice(fresh.length).forEach((element) => element.remove());
  }

  async function refresh(version) {
    if (fetching || version === body.dataset.version) return;
    fetching = true;
    try {
      const answer = await fetch("/table", { cache: "no-store" });
      if (answer.ok) {
        replace(await answer.text());
        body.dataset.version = answer.headers.get("X-Version");
      }
    } catch {
      // the header says that there is no answer, and asks again
    } finally {
      fetching = false;
    }
  }

  document.addEventListener("klr-results", (event) => refresh(event.detail));
})();
