// Charts: <div data-chart='{"unit": "/s", "says": "…", "at": [seconds], "lines": [{"label", "tint", "dash", "values"}]}'>,
// drawn by uPlot in our colours. Below each stand its lines by colour and dash, with the values under the pointer, else the last.
// Readers who do not see it have the sentence of its label, and the table beside it.

import { clock as clockOf, zone } from "./times.js";

const drawn = new Map();
const sync = "rowlock";

// Where lines across a chart of seconds may stand: at what a clock would call round.
const round = [0.0001, 0.001, 0.01, 0.1, 1].flatMap((unit) => [unit, 2 * unit, 5 * unit]).concat(
  [10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800, 86400]);

const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const clock = (at) => clockOf(at * 1000);

function digits(value) {
  if (value === 0) return "0";
  return value >= 100 ? Math.round(value).toLocaleString("en") : String(Number(value.toPrecision(value >= 10 ? 3 : 2)));
}

function duration(seconds) {
  if (seconds < 1) return `${digits(seconds * 1000)} ms`;
  if (seconds < 90) return `${digits(seconds)} s`;
  return seconds < 5400 ? `${digits(seconds / 60)} min` : `${digits(seconds / 3600)} h`;
}

const written = (value, unit) => (value == null ? "–" : unit === "s" ? duration(value) : `${digits(value)}${unit}`);

// A point between two gaps is no line; without a dot nobody would see it.
function alone(plot, number) {
  const values = plot.data[number];
  const found = [];
  values.forEach((value, at) => { if (value != null && values[at - 1] == null && values[at + 1] == null) found.push(at); });
  return found;
}

function sample(line, colour) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  svg.setAttribute("viewBox", "0 0 22 8");
  svg.setAttribute("class", "sample");
  path.setAttribute("d", "M1 4h20");
  path.setAttribute("stroke", colour);
  path.setAttribute("stroke-width", "2");
  path.setAttribute("stroke-dasharray", line.dash.join(" "));
  svg.append(path);
  return svg;
}

function legend(data, colours) {
  const box = document.createElement("div");
  box.className = "legend";
  const values = data.lines.map((line, number) => {
    const item = document.createElement("span");
    const value = document.createElement("b");
    item.append(sample(line, colours[number]), line.label, " ", value);
    box.append(item);
    return value;
  });
  const when = document.createElement("span");
  when.className = "when";
  box.append(when);
  return { box, values, when };
}

function read(shown, at) {
  const { data, key } = shown;
  const place = at ?? data.at.length - 1;
  data.lines.forEach((line, number) => { key.values[number].textContent = written(line.values[place], data.unit); });
  key.when.textContent = data.at.length ? (at == null ? `at ${clock(data.at[place])}` : clock(data.at[place])) : "";
}

function options(data, colours, width, onCursor) {
  const font = "11px Inter, system-ui, sans-serif";
  const axis = { stroke: css("--ink-3"), font, grid: { stroke: css("--line"), width: 1 }, ticks: { show: false } };
  return {
    width,
    height: 176,
    padding: [10, 18, 0, 0],
    legend: { show: false },
    cursor: { y: false, points: { size: 7 }, drag: { x: false, y: false }, sync: { key: sync, setSeries: false } },
    scales: { y: { range: (_plot, _least, most) => [0, most > 0 ? most * 1.08 : 1] } },
    axes: [
      { ...axis, grid: { show: false }, size: 26, space: 70, values: (_plot, at) => at.map(clock) },
      { ...axis, size: 62, space: 34, ...(data.unit === "s" && { incrs: round }), ...(isEmpty(data) && { splits: () => [0] }), values: (_plot, at) => at.map((value) => written(value, data.unit)) },
    ],
    series: [{}, ...data.lines.map((line, number) => ({
      label: line.label,
      stroke: colours[number],
      width: 1.8,
      dash: line.dash,
      fill: number === 0 ? `${colours[number]}1f` : undefined,
      points: { show: false, filter: alone },
    }))],
    hooks: { setCursor: [(plot) => onCursor(plot.cursor.idx)] },
  };
}

// With nothing to show, marks of quarters would say that there is something to read.
const isEmpty = (data) => data.lines.every((line) => line.values.every((value) => !value));
const values = (data) => [data.at, ...data.lines.map((line) => line.values)];
const shape = (data) => JSON.stringify([data.unit, data.lines.map((line) => line.label), document.documentElement.dataset.theme, zone()]);

function draw(element) {
  const text = element.dataset.chart;
  const known = drawn.get(element);
  const theme = document.documentElement.dataset.theme;
  if (known && known.text === text && known.theme === theme && known.zone === zone()) return;
  const data = JSON.parse(text);
  element.setAttribute("aria-label", `${element.dataset.title}. ${data.says}`);
  if (known && known.shape === shape(data)) {
    Object.assign(known, { text, data, zone: zone() });
    known.plot.setData(values(data));
    read(known, known.plot.cursor.idx);
    return;
  }
  known?.plot.destroy();
  element.replaceChildren();
  const colours = data.lines.map((line) => css(`--${line.tint}`));
  const shown = { text, theme, zone: zone(), data, shape: shape(data), key: legend(data, colours) };
  shown.plot = new uPlot(options(data, colours, element.clientWidth, (at) => read(shown, at)), values(data), element);
  element.append(shown.key.box);
  drawn.set(element, shown);
  read(shown, null);
}

const resized = new ResizeObserver((entries) => {
  for (const { target, contentRect } of entries) {
    const plot = drawn.get(target)?.plot;
    if (plot && contentRect.width && plot.width !== Math.floor(contentRect.width)) plot.setSize({ width: Math.floor(contentRect.width), height: 176 });
  }
});

function drawAll() {
  for (const [element, { plot }] of drawn) {
    if (!element.isConnected) { plot.destroy(); resized.unobserve(element); drawn.delete(element); }
  }
  for (const element of document.querySelectorAll("[data-chart]")) {
    draw(element);
    resized.observe(element);
  }
}

export function startCharts() {
  drawAll();
  document.addEventListener("rowlock:shown", drawAll);
}
