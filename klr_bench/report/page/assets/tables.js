"use strict";
/* Tables that sort, filter and give what they show as CSV. */

/* Compares texts; numbers in them count by their values, so that 0.125 comes before 0.5. */
klr.compareTexts = (a, b) => {
  const parts = (text) => text.split(/((?:(?<![\w.])-)?\d+(?:\.\d+)?(?:e[-+]?\d+)?)/i),
    [left, right] = [parts(a), parts(b)];
  for (let at = 0; at < Math.min(left.length, right.length); at++) {
    const order = at % 2 ? left[at] - right[at] : left[at].localeCompare(right[at], "en");
    if (order) return order;
  }
  return left.length - right.length;
};

/* Makes the columns of a printed table sort; the rows of a paper stay below their method, a total stays last. */
klr.sortPrinted = (table) => {
  klr.sorted ??= new Map(); // of tables that newer ones replace
  const body = table.tBodies[0],
    groups = [];
  for (const row of body.rows) {
    if (row.classList.contains("paper") && groups.length) groups.at(-1).push(row);
    else groups.push([row]);
  }
  const total = body.querySelector(".total") ? groups.pop() : [];
  const heads = [...table.tHead.rows[0].cells],
    key = heads.map((head) => head.textContent).join("|");
  heads.forEach((head, at) => {
    if (!head.textContent) return;
    const text = (group) => group[0].cells[at].textContent.trim();
    const number = (group) => parseFloat(text(group).replaceAll(",", ""));
    const compare = (a, b) =>
      at ? number(a) - number(b) || text(a).localeCompare(text(b), "en") : klr.compareTexts(text(a), text(b));
    const isFilled = (group) => !["", "-"].includes(text(group));
    const sortAs = (next) => {
      for (const cell of heads) cell.ariaSort = cell === head ? next : "none";
      let sorted = groups;
      if (next !== "none") {
        sorted = groups.filter(isFilled).sort((a, b) => (next === "ascending" ? compare(a, b) : compare(b, a)));
        sorted.push(...groups.filter((group) => !isFilled(group)));
      }
      body.append(...sorted.flat(), ...total);
    };
    const press = klr.button(head.textContent, () => {
      const next = { none: "ascending", ascending: "descending", descending: "none" }[head.ariaSort];
      klr.sorted.set(key, [at, next]);
      sortAs(next);
    });
    head.ariaSort = "none";
    head.replaceChildren(press);
    const [last, order] = klr.sorted.get(key) ?? [];
    if (last === at) sortAs(order);
  });
};

klr.drawTable = (() => {
  const { element, button, save, asCsv, chosen, choose, numberOf, short, printed } = klr;
  const ROWS = 50,
    pages = new Map();

  const TEST = /^([A-Za-z_]\w*)(<=|>=|!=|<|>|=)(.*)$/;
  const COMPARED = {
    "=": (a, b) => a === b,
    "!=": (a, b) => a !== b,
    "<": (a, b) => a < b,
    ">": (a, b) => a > b,
    "<=": (a, b) => a <= b,
    ">=": (a, b) => a >= b,
  };

  /* A filter is words; a row must have each of them in some cell, or fulfill it: accuracy>0.85 algorithm=oskl */
  const filterOf = (table, text) => {
    const tests = text
      .trim()
      .split(/\s+/)
      .filter(Boolean)
      .map((word) => {
        const parts = TEST.exec(word);
        const place = parts ? table.columns.findIndex((column) => column.name === parts[1]) : -1;
        if (place < 0) {
          const wanted = word.toLowerCase();
          const shown = (row, place) =>
            table.columns[place].numeric ? `${row[place]} ${short(row[place])}` : printed(table, row, place);
          return (row) => row.some((_, place) => shown(row, place).toLowerCase().includes(wanted));
        }
        const compare = COMPARED[parts[2]],
          number = numberOf(parts[3].replaceAll(",", ""));
        if (table.columns[place].numeric && parts[3] !== "")
          return (row) => row[place] !== "" && compare(numberOf(row[place]), number);
        return (row) => compare(row[place], parts[3]);
      });
    return (row) => tests.every((test) => test(row));
  };

  const drawTable = (place, name) => {
    const table = klr.data.tables[name],
      prefix = name + ".";
    const numeric = table.shown.map((at) => table.columns[at]).findLast((column) => column.numeric);
    let visible,
      sort,
      page = pages.get(name) ?? 0,
      rows = [];
    const head = element("tr"),
      body = element("tbody"),
      status = element("span", { class: "count", role: "status" });
    const earlier = button("Earlier", () => {
        page -= 1;
        show();
      }),
      later = button("Later", () => {
        page += 1;
        show();
      });
    const filter = element("input", {
      type: "search",
      spellcheck: "false",
      placeholder: numeric ? `words, or ${numeric.name}>0.85` : "words",
      "aria-label": "Filter " + table.title,
      oninput: () => {
        choose(prefix + "filter", filter.value, "");
        page = 0;
        find();
      },
    });
    const boxes = element("div", { class: "columns" });
    table.columns.forEach((column, at) => {
      const box = element("input", { type: "checkbox", value: String(at) });
      box.addEventListener("change", () => {
        const now = [...boxes.querySelectorAll("input:checked")].map((box) => box.value).join("-");
        choose(prefix + "columns", now, table.shown.join("-"));
        read();
      });
      boxes.append(element("label", {}, box, " " + column.title));
    });

    const read = () => {
      const wanted = new Set(
        chosen(prefix + "columns", table.shown.join("-"))
          .split("-")
          .map(Number),
      );
      visible = [...table.shown, ...table.columns.keys()].filter(
        (at, i, all) => wanted.has(at) && all.indexOf(at) === i,
      );
      for (const box of boxes.querySelectorAll("input")) box.checked = wanted.has(Number(box.value));
      sort = chosen(prefix + "sort", "");
      filter.value = chosen(prefix + "filter", "");
      find();
    };
    const find = () => {
      rows = table.rows.filter(filterOf(table, filter.value));
      const at = table.columns.findIndex((column) => column.name === sort.replace(/^-/, ""));
      if (at >= 0) {
        const sign = sort.startsWith("-") ? -1 : 1,
          numeric = table.columns[at].numeric;
        const value = numeric ? (row) => numberOf(row[at]) : (row) => printed(table, row, at);
        const compare = numeric ? (a, b) => a - b : klr.compareTexts;
        const filled = rows.filter((row) => row[at] !== "").map((row) => [value(row), row]);
        filled.sort((a, b) => sign * compare(a[0], b[0]));
        rows = [...filled.map((pair) => pair[1]), ...rows.filter((row) => row[at] === "")];
      }
      show();
    };
    const show = () => {
      page = Math.max(0, Math.min(page, Math.ceil(rows.length / ROWS) - 1));
      pages.set(name, page);
      head.replaceChildren(
        ...visible.map((at) => {
          const column = table.columns[at],
            here = sort.replace(/^-/, "") === column.name;
          const order = here ? (sort.startsWith("-") ? "descending" : "ascending") : "none";
          const next = !here ? column.name : sort.startsWith("-") ? "" : "-" + column.name;
          const press = button(
            column.title,
            () => {
              sort = next;
              choose(prefix + "sort", sort, "");
              page = 0;
              find();
              head.querySelectorAll("button")[visible.indexOf(at)].focus();
            },
            { title: "Sort by " + column.name },
          );
          return element("th", { scope: "col", "aria-sort": order, class: column.numeric ? "number" : null }, press);
        }),
      );
      body.replaceChildren(
        ...rows.slice(page * ROWS, (page + 1) * ROWS).map((row) =>
          element(
            "tr",
            {},
            ...visible.map((at) => {
              const numeric = table.columns[at].numeric,
                text = printed(table, row, at);
              const kind = numeric ? "number" : (klr.data.verdicts[text] ?? (text.length > 30 ? "long" : null));
              return element("td", { class: kind, title: numeric ? text : null }, numeric ? short(text) : text);
            }),
          ),
        ),
      );
      const last = Math.min(rows.length, (page + 1) * ROWS);
      status.textContent = rows.length ? `${page * ROWS + 1} to ${last} of ${rows.length} rows` : "no rows";
      if (rows.length < table.rows.length) status.textContent += ` (${table.rows.length} in all)`;
      earlier.disabled = page === 0;
      later.disabled = last >= rows.length;
    };

    const csv = button(
      "CSV",
      () => save(table.file, asCsv([table.columns.map((column) => column.name), ...rows]), "text/csv"),
      { title: "The rows that are shown, with all columns and all digits" },
    );
    const scroll = element(
      "div",
      { class: "scroll", role: "group", tabindex: "0", "aria-label": table.title },
      element("table", { class: "records" }, element("thead", {}, head), body),
    );
    place.append(
      element(
        "div",
        { class: "tools" },
        filter,
        element("details", { class: "choose" }, element("summary", {}, "Columns"), boxes),
        csv,
      ),
      scroll,
      element("div", { class: "tools pages" }, earlier, status, later),
    );
    read();
    klr.redrawn.push(read);
  };

  return drawTable;
})();
