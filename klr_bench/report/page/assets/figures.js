"use strict";
/* Figures to hover, zoom and choose from; plotly.js draws them. */
Object.assign(
  klr,
  (() => {
    const { element, button, save, asCsv, chosen, choose, short, asParameters } = klr;
    const MOST_REPEATS = 2000,
      MOST_MARKERS = 24;

    const coarse = matchMedia("(pointer: coarse)");
    /* Paper is white and narrow, whatever the screen is. */
    let printing = false;
    const isDark = () => document.documentElement.dataset.theme === "dark" && !printing;
    const print = (on) => {
      printing = on;
      document.documentElement.classList.toggle("printing", on);
      for (const redraw of klr.redrawn) redraw();
    };
    /* The colors of Okabe and Ito, lighter on a dark ground. */
    const ON_DARK = { "#000000": "#f0f0f0", "#0072B2": "#5ab4f0", "#D55E00": "#ff8a3c", "#009E73": "#2fd3a5" };
    const lighter = (name) => {
      const parts = [1, 3, 5].map((at) => parseInt(name.slice(at, at + 2), 16));
      return Math.max(...parts) < 160 ? `rgb(${parts.map((part) => Math.round((part + 255) / 2))})` : name;
    };
    const color = (name) => (isDark() ? ON_DARK[name] || lighter(name) : name);
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
    const swatch = (series) => {
      const drawing = document.createElementNS("http://www.w3.org/2000/svg", "svg");
      drawing.setAttribute("viewBox", "0 0 12 12");
      drawing.setAttribute("aria-hidden", "true");
      const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
      path.setAttribute("d", SHAPES[series.symbol] || SHAPES.circle);
      path.setAttribute("fill", series.kind === "published" ? "none" : color(series.color));
      path.setAttribute("stroke", color(series.color));
      drawing.append(path);
      return drawing;
    };

    /* Plotly reads some markup in its texts; here all of it is text. */
    const plainText = (text) => String(text).replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

    const rounded = (value) => short(String(Math.abs(value) < 1000 ? Number(value.toPrecision(4)) : Math.round(value)));
    const withSpread = (value, spread) => rounded(value) + (spread ? ` ± ${Number(spread.toPrecision(2))}` : "");

    /* Lines of the tooltip of a point: the method, the repeats, both values with their units, and the parameters. */
    const linesOf = (table, series, point, xLabel, yLabel) => {
      const rows = (series.fits[point] || []).map((at) => table.rows[at]);
      const at = (name) => table.columns.findIndex((column) => column.name === name);
      const lines = [series.names[point] || series.name];
      if (series.kind === "published") lines.push("published");
      else if (rows.length === 1) lines.push(`repeat ${rows[0][at("repeat")]}`);
      else if (rows.length) {
        const sets = new Set(rows.map((row) => row[at("dataset")])).size;
        lines.push(sets > 1 ? `${rows.length} fits on ${sets} data sets` : `mean of ${rows.length} repeats`);
      }
      lines.push(
        `${xLabel}: ${withSpread(series.x[point], series.xSpread[point])}`,
        `${yLabel}: ${withSpread(series.y[point], series.spread[point])}`,
      );
      const params = new Set(series.kind === "published" ? [] : rows.map((row) => row[at("params")]));
      if (params.size > 1) lines.push("parameters differ between the fits");
      else if (params.size) lines.push(asParameters([...params][0]));
      return lines.filter(Boolean);
    };

    const tip = element("div", { class: "tip", hidden: "" });
    document.body.append(tip);
    const hideTip = () => {
      tip.hidden = true;
    };
    addEventListener("scroll", hideTip, { passive: true });
    const showTip = (event, [title, ...lines]) => {
      tip.replaceChildren(element("strong", {}, title), ...lines.map((line) => element("div", {}, line)));
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
      const positive = numbers.filter((value) => value > 0).map(Math.log10),
        even = { nticks: 7, exponentformat: "e" };
      if (!positive.length) return even;
      const low = positive.reduce((a, b) => Math.min(a, b)),
        high = positive.reduce((a, b) => Math.max(a, b));
      const within = high - low < 1 ? [1, 1.5, 2, 3, 4, 5, 6, 8] : high - low < 3 ? [1, 2, 5] : [1];
      const step = Math.max(1, Math.ceil((high - low) / 8)),
        values = [];
      for (let decade = Math.floor(low) - 1; decade <= Math.ceil(high) + 1; decade += 1)
        if (decade % step === 0) for (const value of within) values.push(Number(`${value}e${decade}`));
      if (values.filter((value) => value >= 10 ** low && value <= 10 ** high).length < 2) return even;
      const text = (value) =>
        value >= 1e-3 && value < 1e6
          ? value.toLocaleString("en", { maximumSignificantDigits: 3 })
          : value.toExponential(0).replace("+", "");
      return { tickvals: values, ticktext: values.map(text), tickmode: "array" };
    };

    const drawFigure = (figure) => {
      const plot = klr.data.plots[figure.dataset.plot],
        table = klr.data.tables[plot.table],
        prefix = plot.name + ".";
      const every = plot.facets.flatMap((facet) => facet.series);
      const byId = new Map();
      for (const series of every) if (!byId.has(series.id)) byId.set(series.id, series);
      const ids = [...byId.keys()];
      const hasRepeats = every.some((series) => series.kind === "repeat"),
        hasPublished = every.some((series) => series.kind === "published");
      const few =
        every.filter((series) => series.kind === "repeat").reduce((sum, series) => sum + series.x.length, 0) <= MOST_REPEATS;
      const repeatsAtFirst = hasRepeats && few && every.every((series) => !series.connected) ? "1" : "0";
      const hidden = () => {
        try {
          return new Set(JSON.parse(chosen(prefix + "hidden", "[]")).filter((id) => ids.includes(id)));
        } catch {
          return new Set();
        }
      };
      const scale = (axis, log) => chosen(prefix + axis, log ? "log" : "linear");
      const setHidden = (wanted) => {
        choose(prefix + "hidden", JSON.stringify(ids.filter((id) => wanted.has(id))), "[]");
        draw();
      };

      const switches = element("div", { class: "tools" });
      const toggle = (text, press) => {
        const made = button(text(), () => {
          press();
          draw();
        });
        made.refresh = () => {
          made.textContent = text();
        };
        switches.append(made);
        return made;
      };
      const zoomOf = (facet) => `${prefix}zoom ${facet.title} ${facet.y.label}`;
      const unzoom = () => plot.facets.forEach((facet) => choose(zoomOf(facet), "", ""));
      /* The scales of the panels; they may differ at first, and the switch then returns to these. */
      const logs = { x: [plot.x.log], y: plot.facets.map((facet) => facet.y.log) };
      const scaleOf = (axis) => {
        const [one, ...others] = new Set(logs[axis].map((log) => scale(axis, log)));
        return others.length ? "mixed" : one;
      };
      const rescale = (axis) => {
        const last = new Set(logs[axis]).size > 1 ? "" : "linear";
        choose(prefix + axis, { mixed: "linear", linear: "log", log: last }[scaleOf(axis)], "");
        unzoom(); // a range has the units of the old scale
      };
      const toggles = ["x", "y"].map((axis) =>
        toggle(
          () => `${axis}: ${scaleOf(axis)}`,
          () => rescale(axis),
        ),
      );
      if (hasRepeats)
        toggles.push(
          toggle(
            () => (chosen(prefix + "repeats", repeatsAtFirst) === "1" ? "hide repeats" : "show repeats"),
            () =>
              choose(
                prefix + "repeats",
                chosen(prefix + "repeats", repeatsAtFirst) === "1" ? "0" : "1",
                repeatsAtFirst,
              ),
          ),
        );
      const panels = element("div", { class: "panels" + (plot.facets.length > 1 ? " several" : "") });
      const legend = element("ul", { class: "legend", "aria-label": "Legend: press a name to hide or show it" });
      switches.append(
        button("whole range", () => {
          unzoom();
          draw();
        }),
        button("SVG", () => saveDrawings()),
        button("CSV", () => save(`${plot.name}.csv`, asCsv(shownPoints()), "text/csv"), {
          title: "The points that are shown",
        }),
      );
      for (const [id, series] of byId) {
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
        press.replaceChildren(swatch({ ...series, kind: "mean" }), " " + series.name);
        press.dataset.id = id;
        legend.append(element("li", {}, press));
      }
      if (hasPublished)
        legend.append(
          element(
            "li",
            { class: "published" },
            swatch({ symbol: "circle", color: "#888888", kind: "published" }),
            " hollow: published",
          ),
        );
      if (plot.diagonal) legend.append(element("li", { class: "published" }, "grey line: calibrated"));
      figure.append(switches, panels, legend);
      const places = plot.facets.map((facet) => {
        const place = element("div", {
          class: "panel",
          role: "img",
          "aria-label": `${facet.title}: ${facet.y.label} against ${plot.x.label} of ${[...new Set(facet.series.map((series) => series.name))].join(", ")}. The numbers are in the table of records.`,
        });
        panels.append(place);
        return place;
      });

      /* The means come last: they lie on top, and are what the mouse finds first. */
      const LAYERS = { repeat: 0, published: 1, mean: 2 };
      const shownSeries = (facet) =>
        facet.series
          .filter(
            (series) =>
              !hidden().has(series.id) && (series.kind !== "repeat" || chosen(prefix + "repeats", repeatsAtFirst) === "1"),
          )
          .sort((a, b) => LAYERS[a.kind] - LAYERS[b.kind]);
      /* A spreadsheet takes a text that begins so for a formula. */
      const harmless = (text) => (/^[=+\-@\t\r]/.test(text) ? "'" + text : text);
      const shownPoints = () => [
        ["panel", "series", "kind", plot.x.label, "value", "standard deviation", "what"],
        ...plot.facets.flatMap((facet) =>
          shownSeries(facet).flatMap((series) =>
            series.x.map((x, at) => [
              harmless(facet.title),
              harmless(series.name),
              series.kind,
              String(x ?? ""),
              String(series.y[at] ?? ""),
              String(series.spread[at] ?? ""),
              `${facet.y.label}: ${series.names[at] ?? ""}`,
            ]),
          ),
        ),
      ];

      const traceOf = (series) => {
        const solid = color(series.color),
          faint = series.kind === "repeat",
          hollow = series.kind === "published";
        return {
          type: "scatter",
          name: plainText(series.name),
          x: series.x,
          y: series.y,
          showlegend: false,
          hoverinfo: "none",
          mode: series.connected ? (faint ? "lines" : "lines+markers") : "markers",
          opacity: faint ? 0.35 : 1,
          line: { color: solid, dash: series.dash, width: faint ? 1 : 1.6 },
          marker: {
            color: hollow ? "rgba(0,0,0,0)" : solid,
            symbol: series.symbol,
            maxdisplayed: series.connected && series.x.length > MOST_MARKERS ? MOST_MARKERS / 2 : 0,
            size: faint ? 5 : hollow ? 12 : 8,
            line: { color: solid, width: hollow ? 1.5 : 0 },
          },
          error_y: series.spread.length ? { array: series.spread, color: solid, thickness: 1, width: 2 } : undefined,
          error_x: series.xSpread.length ? { array: series.xSpread, color: solid, thickness: 1, width: 2 } : undefined,
        };
      };
      const layoutOf = (facet, at) => {
        const style = getComputedStyle(document.body),
          ink = printing ? "#000000" : style.color,
          grid = printing ? "#bbbbbb" : getComputedStyle(places[at]).borderTopColor;
        const numbers = (which) => facet.series.flatMap((series) => series[which]);
        const side = (label, log, which, range) => ({
          title: { text: plainText(label) },
          type: log,
          gridcolor: grid,
          linecolor: grid,
          zeroline: false,
          automargin: true,
          ...(log === "log" && !range ? logTicks(numbers(which)) : { nticks: 7, exponentformat: "e" }),
          ...(range ? { range, autorange: false } : { autorange: true }),
        });
        const zoom = chosen(zoomOf(facet), "").split("_").map(Number);
        const whole = zoom.length !== 4 || zoom.some(Number.isNaN);
        return {
          title: { text: plainText(facet.title), font: { size: 14 }, y: 0.97, yanchor: "top" },
          font: { color: ink, family: "system-ui, sans-serif", size: 12 },
          paper_bgcolor: "rgba(0,0,0,0)",
          plot_bgcolor: "rgba(0,0,0,0)",
          margin: { l: 60, r: 12, t: 34, b: 48 },
          height: 340,
          ...(printing ? { width: places[at].clientWidth } : {}),
          hovermode: "closest",
          dragmode: coarse.matches ? false : "zoom",
          xaxis: side(plot.x.label, scale("x", plot.x.log), "x", whole ? null : zoom.slice(0, 2)),
          yaxis: {
            ...side(facet.y.label, scale("y", facet.y.log), "y", whole ? null : zoom.slice(2)),
            ...(facet.y.share && scale("y", facet.y.log) !== "log" ? { minallowed: 0, maxallowed: 100 } : {}),
            rangemode: facet.y.fromZero ? "tozero" : "normal",
          },
          shapes: plot.diagonal
            ? [{ type: "line", x0: 0, y0: 0, x1: 1, y1: 1, line: { color: "#999999", width: 1 }, layer: "below" }]
            : [],
        };
      };
      const draw = () => {
        const gone = hidden();
        for (const press of legend.querySelectorAll("button")) {
          press.setAttribute("aria-pressed", String(!gone.has(press.dataset.id)));
          press.replaceChild(swatch({ ...byId.get(press.dataset.id), kind: "mean" }), press.firstChild);
        }
        for (const item of toggles) item.refresh();
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
              const ranges = [...now.xaxis.range, ...now.yaxis.range];
              choose(zoomOf(facet), ranges.map((value) => Number(value.toPrecision(6))).join("_"), "");
              draw();
            });
          if (first)
            for (const name of ["plotly_hover", "plotly_click"])
              places[at].on(name, (found) => {
                const { curveNumber, pointNumber } = found.points[0],
                  series = shownSeries(facet)[curveNumber];
                showTip(found.event, linesOf(table, series, pointNumber, plot.x.label, facet.y.label));
              });
          if (first) places[at].on("plotly_unhover", hideTip);
          if (first)
            places[at].on("plotly_doubleclick", () => {
              choose(zoomOf(facet), "", "");
              draw();
            });
        });
      };
      const saveDrawings = async () => {
        for (const [at, facet] of plot.facets.entries()) {
          const layout = {
            ...layoutOf(facet, at),
            showlegend: true,
            paper_bgcolor: isDark() ? "#14181d" : "#ffffff",
          };
          const traces = shownSeries(facet).map((series) => ({ ...traceOf(series), showlegend: series.kind === "mean" }));
          const address = await Plotly.toImage({ data: traces, layout }, { format: "svg", width: 800, height: 500 });
          save(
            plot.name + (plot.facets.length > 1 ? `-${at + 1}` : "") + ".svg",
            decodeURIComponent(address.slice(address.indexOf(",") + 1)),
            "image/svg+xml",
          );
        }
      };
      draw();
      klr.redrawn.push(draw);
    };

    return { drawFigure, hideTip, print };
  })(),
);
