// Line charts over time, drawn as SVG.

import { h, replace, svg } from "./dom.js";
import { clock, short } from "./format.js";

const HEIGHT = 190;
const WIDTH_AT_FIRST = 600;
const LEFT = 56;
const RIGHT = 12;
const TOP = 12;
const BOTTOM = 24;
const COLOURS = 8;

/** lineChart({title, format, window_ms, base}): draw([{name, points: [[time_ms, value], ...]}, ...]). `base` is 1024
 * for bytes, so that the lines of the grid are at round numbers of KB and MB. */
export function lineChart({ title, format = short, window_ms = 30 * 60 * 1000, base = 1000 }) {
  const latest = h("span", { class: "chart-latest" });
  const legend = h("div", { class: "legend" });
  const hint = h("div", { class: "chart-hint", hidden: true });
  const plot = svg("svg", { role: "img", "aria-label": title, class: "chart", height: HEIGHT });
  const frame = h("div", { class: "chart-frame" }, plot, hint);
  const element = h(
    "figure",
    { class: "panel" },
    h("figcaption", null, h("h2", null, title), latest),
    frame,
    legend,
  );
  let shown = [];
  let scale = null;
  let width = WIDTH_AT_FIRST;

  function draw(series) {
    shown = series.filter(({ points }) => points.length);
    scale = scaleOf(shown, { window_ms, base, width, now: Date.now() });
    plot.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
    const first = shown[0]?.points.at(-1);
    latest.textContent = first && shown.length === 1 ? format(first[1]) : "";
    plot.setAttribute("aria-label", `${title}${first ? `: last ${format(first[1])}` : ": no data yet"}`);
    plot.replaceChildren(
      ...axes(scale, format),
      ...shown.flatMap(line(scale)),
      svg("line", { class: "cursor", visibility: "hidden" }),
    );
    if (!shown.length) {
      plot.append(svg("text", { x: width / 2, y: HEIGHT / 2, class: "axis middle" }, "Collecting samples…"));
    }
    replace(
      legend,
      shown.length > 1
        ? shown.map(({ name }, index) => h("span", null, h("i", { class: `dot c${index % COLOURS}` }), name))
        : null,
    );
  }

  function hover(event) {
    if (!scale || !shown.length) {
      return;
    }
    const box = plot.getBoundingClientRect();
    const at = scale.time(event.clientX - box.left);
    const point = nearest(shown[0].points, at);
    const x = scale.x(point[0]);
    const cursor = plot.querySelector(".cursor");
    for (const [name, value] of Object.entries({
      x1: x,
      x2: x,
      y1: TOP,
      y2: HEIGHT - BOTTOM,
      visibility: "visible",
    })) {
      cursor.setAttribute(name, value);
    }
    hint.hidden = false;
    const lines = shown
      .slice(0, 8)
      .map(({ name, points }) =>
        h("div", null, shown.length > 1 ? `${name}: ` : "", format(nearest(points, point[0])[1])),
      );
    replace(hint, h("b", null, clock(point[0])), lines);
    hint.style.left = `${Math.min(Math.max(x, 50), width - 60)}px`;
  }

  plot.addEventListener("pointermove", hover);
  plot.addEventListener("pointerleave", () => {
    hint.hidden = true;
    plot.querySelector(".cursor")?.setAttribute("visibility", "hidden");
  });
  draw([]);
  new ResizeObserver(([entry]) => {
    const now = Math.round(entry.contentRect.width);
    if (now > LEFT + RIGHT && now !== width) {
      width = now;
      draw(shown);
    }
  }).observe(frame);
  return { element, draw };
}

function nearest(points, time) {
  return points.reduce(
    (best, point) => (Math.abs(point[0] - time) < Math.abs(best[0] - time) ? point : best),
    points[0],
  );
}

/** A round number at or above the largest value: 1, 2, 4, 6 or 8 times a power of ten, within a unit of the base. */
function roundUp(value, base) {
  if (value <= 1) {
    return 1;
  }
  const unit = base ** Math.floor(Math.log(value) / Math.log(base));
  const power = 10 ** Math.floor(Math.log10(value / unit));
  const step = [1, 2, 4, 6, 8, 10].find((each) => each * power * unit >= value) ?? 10;
  return step * power * unit;
}

function scaleOf(series, { window_ms, base, width: whole, now }) {
  const times = series.flatMap(({ points }) => [points[0][0], points.at(-1)[0]]);
  const end = Math.max(now, ...times);
  const oldest = times.length ? Math.min(...times) : end - window_ms;
  const begin = Math.max(end - window_ms, Math.min(oldest, end - 60000));
  const top = roundUp(
    Math.max(0, ...series.flatMap(({ points }) => points.map(([, value]) => value ?? 0))),
    base,
  );
  const width = whole - LEFT - RIGHT;
  const height = HEIGHT - TOP - BOTTOM;
  return {
    begin,
    end,
    top,
    right: whole - RIGHT,
    x: (time) => LEFT + ((time - begin) / (end - begin)) * width,
    y: (value) => TOP + (1 - value / top) * height,
    time: (x) => begin + ((x - LEFT) / width) * (end - begin),
  };
}

function axes({ begin, end, top, right, x, y }, format) {
  const heights = [0, 0.25, 0.5, 0.75, 1].map((share) => share * top);
  const shares = right < 420 ? [0, 0.5, 1] : [0, 0.25, 0.5, 0.75, 1];
  const times = shares.map((share) => begin + share * (end - begin));
  return [
    ...heights.flatMap((value) => [
      svg("line", { class: "grid", x1: LEFT, x2: right, y1: y(value), y2: y(value) }),
      svg("text", { class: "axis end", x: LEFT - 6, y: y(value) + 4 }, format(value)),
    ]),
    ...times.map((time, index) =>
      svg(
        "text",
        {
          class: `axis ${shares[index] === 0 ? "start" : shares[index] === 1 ? "end" : "middle"}`,
          x: x(time),
          y: HEIGHT - 6,
        },
        clock(time),
      ),
    ),
  ];
}

function line({ begin, x, y }) {
  return ({ points }, index) => {
    const inside = points.filter(([time, value]) => time >= begin && value !== null);
    if (!inside.length) {
      return [];
    }
    const path = inside
      .map(([time, value], place) => `${place ? "L" : "M"}${x(time).toFixed(1)} ${y(value).toFixed(1)}`)
      .join("");
    const area = `${path}L${x(inside.at(-1)[0]).toFixed(1)} ${y(0)}L${x(inside[0][0]).toFixed(1)} ${y(0)}Z`;
    const colour = `c${index % COLOURS}`;
    return [
      index === 0 ? svg("path", { class: `area ${colour}`, d: area }) : null,
      svg("path", { class: `line ${colour}`, d: path }),
    ].filter(Boolean);
  };
}
