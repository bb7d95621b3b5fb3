// What comes next in a series: the past, the mean of what is to come, and its band, a panel for each channel.

import { element } from "/web/dom.js";

/** @typedef {{ name: string, past: (number | null)[], mean: number[], quantiles: Record<string, number[]> }} Channel */
/** @typedef {{ text: string, times: string[], past_times: string[], channels: Channel[] }} Forecast */

const [WIDTH, HEIGHT, LEFT, BELOW, ABOVE] = [640, 150, 56, 18, 8];
const MOST_DRAWN = 24;

/** @param {string} name @param {Record<string, string | number>} attributes @param {(Node | string)[]} children */
function svg(name, attributes, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, String(value));
  node.append(...children);
  return node;
}

/** @param {number} value */
const short = (value) => String(Number(value.toPrecision(4)));

/** @param {Channel} channel @param {[string, string, string]} marks beginning of the past, first and last of the future */
function panel({ name, past, mean, quantiles }, marks) {
  const levels = Object.keys(quantiles);
  const [low, high] = levels.length ? [quantiles[levels[0]], quantiles[levels[levels.length - 1]]] : [[], []];
  const values = /** @type {number[]} */ ([...past, ...mean, ...low, ...high].filter((value) => value !== null));
  let [least, most] = [Math.min(...values), Math.max(...values)];
  if (most - least <= 1e-12 * Math.abs(most)) [least, most] = [least - 0.5, most + 0.5];
  const n = past.length + mean.length;
  /** @param {number} step */
  const x = (step) => LEFT + ((WIDTH - LEFT - 8) * step) / Math.max(1, n - 1);
  /** @param {number} value */
  const y = (value) => ABOVE + ((HEIGHT - ABOVE - BELOW) * (most - value)) / (most - least);
  /** @param {number} step @param {number} value */
  const point = (step, value) => `${x(step).toFixed(1)},${y(value).toFixed(1)}`;
  /** @param {(number | null)[]} ys @param {number} begin */
  const path = (ys, begin) => ys.map((value, at) =>
    value === null ? "" : `${at && ys[at - 1] !== null ? "L" : "M"}${point(begin + at, value)}`).join("");
  const band = [...high.map((value, at) => point(past.length + at, value)),
    ...low.map((value, at) => point(past.length + at, value)).reverse()].join(" ");
  const last = past.length ? past[past.length - 1] : null;
  const drawing = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": name },
    ...[least, (least + most) / 2, most].flatMap((value) => [
      svg("line", { class: "grid", x1: LEFT, x2: WIDTH - 8, y1: y(value), y2: y(value) }),
      svg("text", { x: LEFT - 6, y: y(value) + 4, "text-anchor": "end" }, short(value)),
    ]),
    svg("polygon", { class: "band", points: band }),
    svg("path", { class: "past", d: path(past, 0) }),
    svg("path", { class: "ahead", d: last === null ? path(mean, past.length) : path([last, ...mean], past.length - 1) }),
    ...marks.map((mark, at) => svg("text", { x: [x(0), x(past.length), WIDTH - 8][at], y: HEIGHT - 4, "text-anchor": ["start", "middle", "end"][at] }, mark)),
  );
  const share = levels.length ? ` · ${Math.round(100 * (Number(levels[levels.length - 1]) - Number(levels[0])))} %` : "";
  return element("figure", {}, element("figcaption", {}, element("bdi", { textContent: name }), share), drawing);
}

/** The panels of a forecast. @param {Forecast} forecast */
export function drawn({ channels, times, past_times }) {
  const [n, m] = [channels[0].past.length, channels[0].mean.length];
  /** @type {[string, string, string]} */
  const marks = times.length ? [past_times[0] ?? "", times[0], times[m - 1]] : [`−${n}`, "+1", `+${m}`];
  return channels.slice(0, MOST_DRAWN).map((channel) => panel(channel, marks));
}
