/* What a page does: tables that sort and filter, figures to hover, zoom and choose from.  All data stand in the page;
   what a reader has chosen stands in the address behind "#", so that a link shows the same.  Texts reach the page as
   text alone (textContent), never as markup. */
"use strict";
(() => {
  const ROWS = 50,
    MOST_REPEATS = 2000;
  /* The data of what the page holds, and what draws its tables and figures again. */
  let data;
  const redrawn = [];

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

  // ---- Elements ------------------------------------------------------------------------------------------------

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

  // ---- Tables --------------------------------------------------------------------------------------------------

  const TEST = /^([A-Za-z_]\w*)(<=|>=|!=|<|>|=)(.*)$/;
  const COMPARED = {
    "=": (a, b) => a === b,
    "!=": (a, b) => a !== b,
    "<": (a, b) => a < b,
    ">": (a, b) => a > b,
    "<=": (a, b) => a <= b,
    ">=": (a, b) => a >= b,
  };

  /* A filter is words; a row must have each of them in some cell, or fulfil it: accuracy>0.85 algorithm=oskl */
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
          return (row) => row.some((_, place) => printed(table, row, place).toLowerCase().includes(wanted));
        }
        const compare = COMPARED[parts[2]],
          number = Number(parts[3]);
        if (table.columns[place].numeric && parts[3] !== "" && !Number.isNaN(number))
          return (row) => row[place] !== "" && compare(numberOf(row[place]), number);
        return (row) => compare(row[place], parts[3]);
      });
    return (row) => tests.every((test) => test(row));
  };

  /* A mapping of parameters is shown as in the tables: G=4; gamma=3.85. */
  const asParameters = (text) => {
    try {
      const value = (one) =>
        typeof one === "number" ? short(String(one)) : typeof one === "string" ? one : JSON.stringify(one);
      return Object.entries(JSON.parse(text))
        .map(([name, one]) => `${name}=${value(one)}`)
        .join("; ");
    } catch {
      return text;
    }
  };
  const printed = (table, row, place) => {
    const name = table.columns[place].name,
      names = table.labels[name];
    if (names && Object.hasOwn(names, row[place])) return names[row[place]];
    return (name === "variant" || name === "params") && row[place].startsWith("{")
      ? asParameters(row[place])
      : row[place];
  };

  const numberOf = (text) => (text === "inf" ? Infinity : text === "-inf" ? -Infinity : Number(text));
  const short = (text) => {
    const number = numberOf(text);
    if (text === "" || Number.isNaN(number) || !Number.isFinite(number)) return text;
    if (Number.isInteger(number)) return Math.abs(number) < 1e15 ? number.toLocaleString("en") : text;
    return String(Number(number.toPrecision(6)));
  };

  const drawTable = (place, name) => {
    const table = data.tables[name],
      prefix = name + ".";
    let visible,
      sort,
      page = 0,
      rows = [];
    const head = element("tr"),
      body = element("tbody"),
      said = element("span", { class: "count", role: "status" });
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
      placeholder: "words, or accuracy>0.85",
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
        const now = [...boxes.querySelectorAll("input:checked")].map((one) => one.value).join("-");
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
        const compare = numeric ? (a, b) => a - b : (a, b) => a.localeCompare(b, "en", { numeric: true });
        const filled = rows.filter((row) => row[at] !== "").map((row) => [value(row), row]);
        filled.sort((a, b) => sign * compare(a[0], b[0]));
        rows = [...filled.map((pair) => pair[1]), ...rows.filter((row) => row[at] === "")];
      }
      show();
    };
    const show = () => {
      page = Math.max(0, Math.min(page, Math.ceil(rows.length / ROWS) - 1));
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
              return element(
                "td",
                { class: numeric ? "number" : text.length > 30 ? "long" : null, title: numeric ? text : null },
                numeric ? short(text) : text,
              );
            }),
          ),
        ),
      );
      const last = Math.min(rows.length, (page + 1) * ROWS);
      said.textContent = rows.length ? `${page * ROWS + 1} to ${last} of ${rows.length} rows` : "no rows";
      if (rows.length < table.rows.length) said.textContent += ` (${table.rows.length} in all)`;
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
      { class: "scroll", role: "region", tabindex: "0", "aria-label": table.title },
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
      element("div", { class: "tools pages" }, earlier, said, later),
    );
    read();
    redrawn.push(read);
  };

  // ---- Figures -------------------------------------------------------------------------------------------------

  const dark = matchMedia("(prefers-color-scheme: dark)"),
    coarse = matchMedia("(pointer: coarse)");
  /* The colours of Okabe and Ito, lighter on a dark ground. */
  const ON_DARK = { "#000000": "#f0f0f0", "#0072B2": "#5ab4f0", "#D55E00": "#ff8a3c", "#009E73": "#2fd3a5" };
  const colour = (name) => (dark.matches ? ON_DARK[name] || name : name);
  const SHAPES = {
    circle: "M2 6a4 4 0 1 0 8 0a4 4 0 1 0-8 0",
    square: "M2 2h8v8h-8z",
    "triangle-up": "M6 1.5l5 8.5h-10z",
    diamond: "M6 1l5 5-5 5-5-5z",
    "triangle-down": "M6 10.5l5-8.5h-10z",
    cross: "M4.5 1h3v3.500h3.500v3h-3.500v3.500h-3v-3.500h-3.500v-3h3.500z",
    x: "M2 3.500l1.500-1.500 2.500 2.500 2.500-2.500 1.500 1.500-2.500 2.500 2.500 2.500-1.500 1.500-2.500-2.500-2.500 2.500-1.500-1.500 2.500-2.500z",
    "triangle-left": "M1.500 6l8.500-5v10z",
    "triangle-right": "M10.500 6l-8.500-5v10z",
    pentagon: "M6 1l5 3.800-2 5.700h-6l-2-5.700z",
    hexagon: "M3.500 1.500h5l2.500 4.500-2.500 4.500h-5l-2.500-4.500z",
    star: "M6 .5l1.600 3.700 4 .4-3 2.600.9 3.900-3.500-2.100-3.500 2.100.9-3.900-3-2.600 4-.4z",
  };
  const swatch = (one) => {
    const drawing = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    drawing.setAttribute("viewBox", "0 0 12 12");
    drawing.setAttribute("aria-hidden", "true");
    const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
    path.setAttribute("d", SHAPES[one.symbol] || SHAPES.circle);
    path.setAttribute("fill", one.kind === "published" ? "none" : colour(one.colour));
    path.setAttribute("stroke", colour(one.colour));
    drawing.append(path);
    return drawing;
  };

  /* Plotly reads some markup in its texts; here all of it is text. */
  const plainText = (text) => String(text).replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

  const meanOf = (numbers) => numbers.reduce((sum, one) => sum + one, 0) / numbers.length;
  const spreadOf = (numbers) => {
    const mean = meanOf(numbers);
    return Math.sqrt(numbers.reduce((sum, one) => sum + (one - mean) ** 2, 0) / (numbers.length - 1));
  };

  /* What is said of a point: of one fit all that its record has, of several the means of their numbers. */
  const SILENT = new Set([
    "key",
    "experiment",
    "dataset",
    "algorithm",
    "variant",
    "params",
    "repeat",
    "seed",
    "status",
    "message",
    "host",
    "cpu",
  ]);
  const saidOf = (table, one, point) => {
    const rows = (one.fits[point] || []).map((at) => table.rows[at]);
    const at = (name) => table.columns.findIndex((column) => column.name === name);
    const found = { title: one.names[point] || one.name, lines: [], numbers: [] };
    if (one.kind === "published") found.lines.push("published");
    if (!rows.length || one.kind === "published") return found;
    found.lines.push(rows.length === 1 ? `repeat ${rows[0][at("repeat")]}` : `mean of ${rows.length} repeats`);
    const params = new Set(rows.map((row) => row[at("params")]));
    found.lines.push(params.size === 1 ? asParameters([...params][0]) : "parameters differ between the repeats");
    table.columns.forEach((column, place) => {
      if (SILENT.has(column.name) || !column.numeric) return;
      const values = rows
        .map((row) => row[place])
        .filter((text) => text !== "")
        .map(numberOf);
      if (!values.length) return;
      const spread = values.length > 1 ? ` ± ${short(String(Number(spreadOf(values).toPrecision(2))))}` : "";
      found.numbers.push([column.name, short(String(meanOf(values))) + spread]);
    });
    return found;
  };

  const tip = element("div", { class: "tip", hidden: "" });
  document.body.append(tip);
  const hideTip = () => {
    tip.hidden = true;
  };
  addEventListener("scroll", hideTip, { passive: true });
  const showTip = (event, said) => {
    tip.replaceChildren(
      element("strong", {}, said.title),
      ...said.lines.map((line) => element("div", {}, line)),
      element(
        "dl",
        {},
        ...said.numbers.map(([name, text]) =>
          element("div", {}, element("dt", {}, name), " ", element("dd", {}, text)),
        ),
      ),
    );
    tip.hidden = false;
    const box = tip.getBoundingClientRect(),
      room = 14;
    const beside =
      event.clientX + room + box.width <= innerWidth ? event.clientX + room : event.clientX - room - box.width;
    tip.style.left = `${Math.max(4, Math.min(beside, innerWidth - box.width - 4))}px`;
    const below = event.clientY + room,
      above = event.clientY - room - box.height;
    tip.style.top = `${below + box.height <= innerHeight ? below : Math.max(4, above)}px`;
  };

  /* Ticks of a logarithmic axis, written out: 1, 2, 5, ... over a few decades, else powers of ten. */
  const logTicks = (numbers) => {
    const positive = numbers.filter((one) => one > 0).map(Math.log10);
    if (!positive.length) return {};
    const low = positive.reduce((a, b) => Math.min(a, b)),
      high = positive.reduce((a, b) => Math.max(a, b));
    const within = high - low < 1 ? [1, 1.5, 2, 3, 4, 5, 6, 8] : high - low < 3 ? [1, 2, 5] : [1];
    const step = Math.max(1, Math.ceil((high - low) / 8)),
      values = [];
    for (let decade = Math.floor(low) - 1; decade <= Math.ceil(high) + 1; decade += 1)
      if (decade % step === 0) for (const one of within) values.push(Number(`${one}e${decade}`));
    const text = (one) =>
      one >= 1e-3 && one < 1e6
        ? one.toLocaleString("en", { maximumSignificantDigits: 3 })
        : one.toExponential(0).replace("+", "");
    return { tickvals: values, ticktext: values.map(text), tickmode: "array" };
  };

  const drawFigure = (figure) => {
    const plot = data.plots[figure.dataset.plot],
      table = data.tables[plot.table],
      prefix = plot.name + ".";
    const every = plot.facets.flatMap((facet) => facet.series);
    const known = new Map();
    for (const one of every) if (!known.has(one.id)) known.set(one.id, one);
    const ids = [...known.keys()];
    const hasRepeats = every.some((one) => one.kind === "repeat"),
      hasPublished = every.some((one) => one.kind === "published");
    const few =
      every.filter((one) => one.kind === "repeat").reduce((sum, one) => sum + one.x.length, 0) <= MOST_REPEATS;
    const repeatsAtFirst = hasRepeats && few && every.every((one) => !one.connected) ? "1" : "0";
    const hidden = () =>
      new Set(
        chosen(prefix + "hidden", "")
          .split("-")
          .filter(Boolean)
          .map((at) => ids[Number(at)]),
      );
    const scale = (axis, log) => chosen(prefix + axis, log ? "log" : "linear");
    const setHidden = (wanted) => {
      choose(prefix + "hidden", ids.flatMap((id, at) => (wanted.has(id) ? [at] : [])).join("-"), "");
      draw();
    };

    const switches = element("div", { class: "tools" });
    const toggle = (text, isOn, press) => {
      const made = button(text(), () => {
        press();
        made.textContent = text();
        draw();
      });
      made.refresh = () => {
        made.textContent = text();
      };
      switches.append(made);
      return made;
    };
    const yLog = plot.facets[0].y.log;
    const toggles = [
      toggle(
        () => `x: ${scale("x", plot.x.log)}`,
        null,
        () => choose(prefix + "x", scale("x", plot.x.log) === "log" ? "linear" : "log", plot.x.log ? "log" : "linear"),
      ),
      toggle(
        () => `y: ${scale("y", yLog)}`,
        null,
        () => choose(prefix + "y", scale("y", yLog) === "log" ? "linear" : "log", yLog ? "log" : "linear"),
      ),
    ];
    if (hasRepeats)
      toggles.push(
        toggle(
          () => (chosen(prefix + "repeats", repeatsAtFirst) === "1" ? "hide repeats" : "show repeats"),
          null,
          () =>
            choose(prefix + "repeats", chosen(prefix + "repeats", repeatsAtFirst) === "1" ? "0" : "1", repeatsAtFirst),
        ),
      );
    const panels = element("div", { class: "panels" + (plot.facets.length > 1 ? " several" : "") });
    const legend = element("ul", { class: "legend", "aria-label": "Legend: press a name to hide or show it" });
    switches.append(
      button("whole range", () => {
        plot.facets.forEach((_, at) => choose(`${prefix}zoom${at}`, "", ""));
        draw();
      }),
      button("SVG", () => saveDrawings()),
      button("CSV", () => save(`${plot.name}.csv`, asCsv(shownPoints()), "text/csv"), {
        title: "The points that are shown",
      }),
    );
    for (const [id, one] of known) {
      const press = button(
        "",
        () => {
          const now = hidden();
          if (now.has(id)) now.delete(id);
          else now.add(id);
          setHidden(now);
        },
        { title: "Hide or show; press twice to show it alone" },
      );
      press.addEventListener("dblclick", () => setHidden(new Set(ids.filter((other) => other !== id))));
      press.append(swatch({ ...one, kind: "mean" }), " " + one.name);
      press.dataset.id = id;
      legend.append(element("li", {}, press));
    }
    if (hasPublished)
      legend.append(
        element(
          "li",
          { class: "published" },
          swatch({ symbol: "circle", colour: "#888888", kind: "published" }),
          " hollow: published",
        ),
      );
    if (plot.diagonal) legend.append(element("li", { class: "published" }, "grey line: calibrated"));
    figure.append(switches, panels, legend);
    const places = plot.facets.map((facet) => {
      const place = element("div", {
        class: "panel",
        role: "img",
        "aria-label": `${facet.title}: ${facet.y.label} against ${plot.x.label} of ${[...new Set(facet.series.map((one) => one.name))].join(", ")}. The numbers are in the table of records.`,
      });
      panels.append(place);
      return place;
    });

    /* The means come last: they lie on top, and are what the mouse finds first. */
    const LAYERS = { repeat: 0, published: 1, mean: 2 };
    const shownSeries = (facet) =>
      facet.series
        .filter(
          (one) =>
            !hidden().has(one.id) && (one.kind !== "repeat" || chosen(prefix + "repeats", repeatsAtFirst) === "1"),
        )
        .sort((a, b) => LAYERS[a.kind] - LAYERS[b.kind]);
    const shownPoints = () => [
      ["panel", "series", "kind", plot.x.label, "value", "standard deviation", "what"],
      ...plot.facets.flatMap((facet) =>
        shownSeries(facet).flatMap((one) =>
          one.x.map((x, at) => [
            facet.title,
            one.name,
            one.kind,
            String(x ?? ""),
            String(one.y[at] ?? ""),
            String(one.spread[at] ?? ""),
            `${facet.y.label}: ${one.names[at] ?? ""}`,
          ]),
        ),
      ),
    ];

    const traceOf = (one) => {
      const own = colour(one.colour),
        faint = one.kind === "repeat",
        hollow = one.kind === "published";
      return {
        type: "scatter",
        name: plainText(one.name),
        x: one.x,
        y: one.y,
        showlegend: false,
        hoverinfo: "none",
        mode: one.connected ? (faint ? "lines" : "lines+markers") : "markers",
        opacity: faint ? 0.35 : 1,
        line: { color: own, dash: one.dash, width: faint ? 1 : 1.6 },
        marker: {
          color: hollow ? "rgba(0,0,0,0)" : own,
          symbol: one.symbol,
          size: faint ? 5 : hollow ? 12 : 8,
          line: { color: own, width: hollow ? 1.5 : 0 },
        },
        error_y: one.spread.length ? { array: one.spread, color: own, thickness: 1, width: 2 } : undefined,
        error_x: one.xSpread.length ? { array: one.xSpread, color: own, thickness: 1, width: 2 } : undefined,
      };
    };
    const layoutOf = (facet, at) => {
      const style = getComputedStyle(document.body),
        ink = style.color,
        grid = style.getPropertyValue("--line").trim();
      const numbers = (which) => facet.series.flatMap((one) => one[which]);
      const side = (label, log, which, range) => ({
        title: { text: plainText(label) },
        type: log,
        gridcolor: grid,
        linecolor: grid,
        zeroline: false,
        automargin: true,
        ...(log === "log" ? logTicks(numbers(which)) : { nticks: 7, exponentformat: "e" }),
        ...(range ? { range, autorange: false } : { autorange: true }),
      });
      const zoom = chosen(`${prefix}zoom${at}`, "").split("_").map(Number);
      const whole = zoom.length !== 4 || zoom.some(Number.isNaN);
      return {
        title: { text: plainText(facet.title), font: { size: 14 }, y: 0.97, yanchor: "top" },
        font: { color: ink, family: "system-ui, sans-serif", size: 12 },
        paper_bgcolor: "rgba(0,0,0,0)",
        plot_bgcolor: "rgba(0,0,0,0)",
        margin: { l: 60, r: 12, t: 34, b: 48 },
        height: 340,
        hovermode: "closest",
        dragmode: coarse.matches ? false : "zoom",
        xaxis: side(plot.x.label, scale("x", plot.x.log), "x", whole ? null : zoom.slice(0, 2)),
        yaxis: side(facet.y.label, scale("y", facet.y.log), "y", whole ? null : zoom.slice(2)),
        shapes: plot.diagonal
          ? [{ type: "line", x0: 0, y0: 0, x1: 1, y1: 1, line: { color: "#999999", width: 1 }, layer: "below" }]
          : [],
      };
    };
    const draw = () => {
      const gone = hidden();
      for (const press of legend.querySelectorAll("button")) {
        press.setAttribute("aria-pressed", String(!gone.has(press.dataset.id)));
        press.replaceChild(swatch({ ...known.get(press.dataset.id), kind: "mean" }), press.firstChild);
      }
      for (const one of toggles) one.refresh();
      plot.facets.forEach((facet, at) => {
        const first = !places[at].classList.contains("js-plotly-plot");
        Plotly.react(places[at], shownSeries(facet).map(traceOf), layoutOf(facet, at), {
          responsive: true,
          displayModeBar: false,
          doubleClick: false,
        });
        if (first)
          places[at].on("plotly_relayout", (change) => {
            if (change["xaxis.range[0]"] === undefined && change["yaxis.range[0]"] === undefined) return;
            const now = places[at].layout;
            choose(
              `${prefix}zoom${at}`,
              [...now.xaxis.range, ...now.yaxis.range].map((one) => Number(one.toPrecision(6))).join("_"),
              "",
            );
          });
        if (first)
          for (const name of ["plotly_hover", "plotly_click"])
            places[at].on(name, (found) => {
              const { curveNumber, pointNumber } = found.points[0],
                one = shownSeries(facet)[curveNumber];
              const said = saidOf(table, one, pointNumber);
              said.lines.push(
                `${plot.x.label}: ${short(String(one.x[pointNumber]))}`,
                `${facet.y.label}: ${short(String(one.y[pointNumber]))}`,
              );
              showTip(found.event, said);
            });
        if (first) places[at].on("plotly_unhover", hideTip);
        if (first)
          places[at].on("plotly_doubleclick", () => {
            choose(`${prefix}zoom${at}`, "", "");
            draw();
          });
      });
    };
    const saveDrawings = async () => {
      for (const [at, facet] of plot.facets.entries()) {
        const layout = {
          ...layoutOf(facet, at),
          showlegend: true,
          paper_bgcolor: dark.matches ? "#14181d" : "#ffffff",
        };
        const traces = shownSeries(facet).map((one) => ({ ...traceOf(one), showlegend: one.kind === "mean" }));
        const address = await Plotly.toImage({ data: traces, layout }, { format: "svg", width: 800, height: 500 });
        save(
          plot.name + (plot.facets.length > 1 ? `-${at + 1}` : "") + ".svg",
          decodeURIComponent(address.slice(address.indexOf(",") + 1)),
          "image/svg+xml",
        );
      }
    };
    draw();
    redrawn.push(draw);
  };

  // ---- The page ------------------------------------------------------------------------------------------------

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

  /* Gives life to what the page holds; figures of these names are drawn at once. */
  const begin = (drawn) => {
    data = JSON.parse(document.getElementById("data")?.textContent ?? '{"tables":{},"plots":{}}');
    redrawn.length = 0;
    for (const place of content.querySelectorAll(".data-table")) drawTable(place, place.dataset.table);
    for (const place of content.querySelectorAll(".command")) {
      const text = place.textContent;
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

  /* Puts newer content in the place of what is there; what is scrolled, unfolded or drawn stays so. */
  const replace = (html) => {
    const place = document.createElement("template");
    place.innerHTML = html;
    const scrolled = [...content.querySelectorAll(".scroll")].map((one) => one.scrollLeft);
    const unfolded = [...content.querySelectorAll("details")].map((one) => one.open);
    const focused = [...content.querySelectorAll("button, input, summary, .scroll")].indexOf(document.activeElement);
    const drawn = new Set([...content.querySelectorAll(".plot:has(.panel)")].map((one) => one.dataset.plot));
    const down = scrollY;
    hideTip();
    content.style.minHeight = `${content.offsetHeight}px`;
    content.replaceChildren(place.content);
    begin(drawn);
    content.querySelectorAll(".scroll").forEach((one, at) => (one.scrollLeft = scrolled[at] ?? 0));
    content.querySelectorAll("details").forEach((one, at) => (one.open = unfolded[at] ?? one.open));
    content.querySelectorAll("button, input, summary, .scroll")[focused]?.focus({ preventScroll: true });
    content.style.minHeight = "";
    scrollTo({ top: down, behavior: "instant" });
  };

  /* A page that watches a run is told of newer results. */
  let fetching = false;
  document.addEventListener("klr-results", async (event) => {
    if (fetching || event.detail === content.dataset.version) return;
    fetching = true;
    try {
      const answer = await fetch("/table", { cache: "no-store" });
      if (answer.ok) {
        replace(await answer.text());
        content.dataset.version = answer.headers.get("X-Version");
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
  });
  dark.addEventListener("change", () => {
    for (const redraw of redrawn) redraw();
  });
  addEventListener("hashchange", () => {
    if (readAddress()) for (const redraw of redrawn) redraw();
  });
  readAddress();
  begin(new Set());
  document.documentElement.dataset.ready = "true";
})();
