"use strict";
/* What the tables and the figures of a page share.  All data stand in the page.  What a reader has chosen stands in the
   address behind "#", so that a link shows the same.  Texts reach the page as text alone (textContent), never as
   markup. */
const klr = (() => {
  /* `data`: of what the page holds; `redrawn`: what draws its tables and figures again. */
  const shared = { data: null, redrawn: [] };

  // ---- The address ---------------------------------------------------------------------------------------------

  let state = new URLSearchParams();
  const readAddress = () => {
    const hash = location.hash.slice(1);
    if (!hash || hash.includes("=")) {
      state = new URLSearchParams(hash);
      return true;
    }
    return false;
  };
  const chosen = (key, otherwise) => (state.has(key) ? state.get(key) : otherwise);
  const choose = (key, value, otherwise) => {
    if (value === otherwise || value === "") state.delete(key);
    else state.set(key, value);
    const text = state.toString();
    history.replaceState(null, "", text ? "#" + text : location.pathname + location.search);
  };

  // ---- Elements and files --------------------------------------------------------------------------------------

  const element = (name, attributes = {}, ...inside) => {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
      else if (value !== null && value !== undefined) made.setAttribute(key, value);
    }
    made.append(...inside);
    return made;
  };
  const button = (text, onclick, attributes = {}) =>
    element("button", { type: "button", onclick, ...attributes }, text);

  const save = (name, content, kind) => {
    const address = URL.createObjectURL(new Blob([content], { type: kind }));
    const link = element("a", { href: address, download: name });
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(address), 60000);
  };
  const quoted = (text) => (/[",\r\n]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text);
  const asCsv = (rows) => rows.map((row) => row.map(quoted).join(",") + "\n").join("");

  const copy = async (text) => {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      const area = element("textarea", { "aria-hidden": "true", class: "off-screen" });
      area.value = text;
      document.body.append(area);
      area.select();
      const done = document.execCommand("copy");
      area.remove();
      return done;
    }
  };

  // ---- Texts of cells ------------------------------------------------------------------------------------------

  const numberOf = (text) => (text === "inf" ? Infinity : text === "-inf" ? -Infinity : Number(text));
  const short = (text) => {
    const number = numberOf(text);
    if (text === "" || Number.isNaN(number) || !Number.isFinite(number)) return text;
    if (Number.isInteger(number)) return Math.abs(number) < 1e15 ? number.toLocaleString("en") : text;
    return String(Number(number.toPrecision(6)));
  };

  /* A mapping of parameters is shown as in the tables: G=4; gamma=3.85. */
  const asParameters = (text) => {
    try {
      const value = (item) =>
        typeof item === "number" ? short(String(item)) : typeof item === "string" ? item : JSON.stringify(item);
      return Object.entries(JSON.parse(text))
        .map(([name, item]) => `${name}=${value(item)}`)
        .join("; ");
    } catch {
      return text;
    }
  };

  /* The text of a cell as it is shown. */
  const printed = (table, row, place) => {
    const name = table.columns[place].name,
      names = table.labels[name];
    if (names && Object.hasOwn(names, row[place])) return names[row[place]];
    return (name === "variant" || name === "params") && row[place].startsWith("{")
      ? asParameters(row[place])
      : row[place];
  };

  return Object.assign(shared, {
    ...{ readAddress, chosen, choose },
    ...{ element, button, save, asCsv, copy },
    ...{ numberOf, short, asParameters, printed },
  });
})();
