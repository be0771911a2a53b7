"use strict";
/* The mode of the page is that of the system, unless the reader chose the other one. */
(() => {
  const root = document.documentElement,
    system = matchMedia("(prefers-color-scheme: dark)");
  const of = (isDark) => (isDark ? "dark" : "light");
  let chosen = null;
  try {
    chosen = localStorage.getItem("klr-theme");
  } catch {
    // a browser may keep nothing for a file
  }
  const apply = () => {
    root.dataset.theme = chosen ?? of(system.matches);
    const button = document.getElementById("theme");
    if (button) {
      button.textContent = root.dataset.theme === "dark" ? "Light mode" : "Dark mode";
      button.hidden = false;
    }
    document.dispatchEvent(new Event("klr-theme"));
  };
  system.addEventListener("change", apply);
  document.addEventListener("DOMContentLoaded", () => {
    document.getElementById("theme").addEventListener("click", () => {
      const next = of(root.dataset.theme === "light");
      chosen = next === of(system.matches) ? null : next;
      try {
        if (chosen) localStorage.setItem("klr-theme", chosen);
        else localStorage.removeItem("klr-theme");
      } catch {
        // the choice lasts until the page is left
      }
      apply();
    });
    apply();
  });
  apply();
})();
