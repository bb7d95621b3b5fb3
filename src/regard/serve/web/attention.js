// What the model looked at: two lines of words; pointing at one colours the other line by what counts for it.

import { $, element, fill } from "/web/dom.js";
import { said, say, translated } from "/web/language.js";
import { AttentionMap, Palette, fullTone } from "/web/numbers.js";
import * as plane from "/web/plane_map.js";

/** @import { Attention, Head } from "/web/numbers.js" */
/** @typedef {"rows" | "columns"} Side */

const MOST_WORDS = 600;
const SIDES = /** @type {const} */ (["rows", "columns"]);

const darkness = matchMedia("(prefers-color-scheme: dark)");
let palette = "";
/** @type {Attention | null} */
let shown = null;
/** @type {AttentionMap[]} */
let maps = [];
/** @type {{ map: AttentionMap, head: Head, side: Side, at: number }} */
let view;
/** @type {Record<Side, HTMLElement[]>} */
let words = { rows: [], columns: [] };

/** @param {string} hex 256 colours */
export function start(hex) {
  palette = hex;
  plane.start();
  $("site").addEventListener("change", () => choose(maps[Number($("site").value)], view.head));
  $("head").addEventListener("change", () => choose(view.map, $("head").value === "mean" ? null : Number($("head").value)));
  darkness.addEventListener("change", relabel);
  document.addEventListener("keydown", ({ key, target }) => {
    if (!shown || target instanceof HTMLInputElement || target instanceof HTMLTextAreaElement) return;
    if (key === "[" || key === "]") stepHead(key === "[" ? -1 : 1);
  });
  for (const side of SIDES) $(side).addEventListener("keydown", (event) => step(event, side));
}

/** Nothing to look at, while another answer is on its way. */
export function hide() {
  shown = null;
  $("picture").hidden = true;
}

/** Unless another question has been asked meanwhile. @param {Attention} attention @param {AbortSignal} signal */
export async function show(attention, signal) {
  const drawn = attention.maps.map((raw) => new AttentionMap(raw, attention));
  await Promise.all(drawn.map((map) => map.ready));
  if (signal.aborted) return;
  shown = attention;
  maps = drawn;
  $("picture").hidden = false;
  view = { map: maps[attention.main], head: null, side: "rows", at: 0 };
  relabel();
}

/** Everything again, in the language and the colours of now. */
export function relabel() {
  if (!shown) return;
  fill($("site"), maps.map((map, at) => [String(at), translated(map.title)]));
  const attends = maps.some(({ holds }) => holds === "weight");
  $("looked").textContent = say(attends ? "heading" : "headingMeasured");
  $("site-name").textContent = say(attends ? "layer" : "map");
  $("caveat").hidden = !attends;
  $("measured").hidden = !shown.trust;
  if (shown.trust) $("measured").textContent = said(shown.trust.sentences);
  choose(view.map, view.head);
}

/** @param {AttentionMap} map @param {Head} head */
function choose(map, head) {
  const isNew = map !== view.map;
  view.map = map;
  view.head = head !== null && head < map.heads && map.heads > 1 ? head : null;
  if (isNew) Object.assign(view, { side: "rows", at: 0 });
  const heads = headsOf(map);
  fill($("head"), heads.map((one) => [String(one ?? "mean"), one === null ? say("mean") : say("headNumber", { n: one + 1 })]));
  $("head-label").hidden = heads.length === 1;
  $("head").value = String(view.head ?? "mean");
  $("site").value = String(maps.indexOf(map));
  drawLegend();
  $("plane").hidden = !map.isPlane;
  for (const id of ["columns-name", "columns"]) $(id).hidden = map.isPlane;
  $("look-hint").textContent = say(map.isPlane ? "planeHint" : "lookHint");
  if (map.isPlane) {
    $("plane").setAttribute("aria-label", translated(map.title));
    plane.show(map, map.head(view.head), palette, darkness.matches);
    return;
  }
  for (const side of SIDES) fillLine(side);
  point(view.side, view.at);
}

/** @param {AttentionMap} map @returns {Head[]} */
function headsOf(map) {
  return map.heads > 1 ? [null, ...Array(map.heads).keys()] : [null];
}

/** @param {number} by */
function stepHead(by) {
  const heads = headsOf(view.map), at = heads.indexOf(view.head);
  choose(view.map, heads[(at + by + heads.length) % heads.length]);
}

function drawLegend() {
  const colours = new Palette(palette, darkness.matches);
  const scale = Float32Array.from({ length: 256 }, (_, at) => at / 255);
  $("legend").getContext("2d")?.putImageData(colours.image({ cells: scale, rows: 1, columns: 256 }, 1), 0, 0);
  $("holds").textContent = say(view.map.holds);
  $("full-tone").textContent = fullTone(view.map.head(view.head), view.map.width).toFixed(2);
}

/** @param {Side} side */
function fillLine(side) {
  const axis = view.map[side];
  $(`${side}-name`).textContent = translated(axis.name);
  $(side).setAttribute("aria-label", translated(axis.name));
  words[side] = axis.labels.slice(0, MOST_WORDS).map((label, at) => {
    const word = element("bdi", { textContent: label, role: "option" });
    for (const kind of ["pointerenter", "pointerdown", "focus"]) word.addEventListener(kind, () => point(side, at));
    return word;
  });
  const hidden = axis.labels.length - words[side].length;
  $(side).replaceChildren(...words[side], ...(hidden ? [say("moreWords", { n: hidden })] : []));
}

/** Left and right along a line, up and down between the lines. @param {KeyboardEvent} event @param {Side} side */
function step(event, side) {
  const other = side === "rows" ? "columns" : "rows";
  /** @type {Record<string, [Side, number]>} */
  const ways = { ArrowLeft: [side, view.at - 1], ArrowRight: [side, view.at + 1], Home: [side, 0], End: [side, Infinity],
    ArrowUp: [other, partner()], ArrowDown: [other, partner()] };
  if (!ways[event.key]) return;
  event.preventDefault();
  const [line, place] = ways[event.key];
  words[line][Math.min(words[line].length - 1, Math.max(0, place))].focus();
}

/** How much a word of the other line counts for the word pointed at. @param {number} at */
function weight(at) {
  const weights = view.map.head(view.head), { width } = view.map;
  return view.side === "rows" ? weights[view.at * width + at] : weights[at * width + view.at];
}

/** The word of the other line that counts most. */
function partner() {
  const count = words[view.side === "rows" ? "columns" : "rows"].length;
  let best = 0;
  for (let at = 1; at < count; at++) if (weight(at) > weight(best)) best = at;
  return best;
}

/** Shades the other line by what it counts for this word. @param {Side} side @param {number} at */
function point(side, at) {
  Object.assign(view, { side, at });
  const other = side === "rows" ? "columns" : "rows";
  const colours = new Palette(palette, darkness.matches);
  const tone = fullTone(view.map.head(view.head), view.map.width);
  words[other].forEach((word, place) => {
    const fraction = weight(place) / tone;
    Object.assign(word.style, { background: colours.css(fraction), color: colours.ink(fraction) });
  });
  for (const word of words[side]) Object.assign(word.style, { background: "", color: "" });
  for (const line of SIDES) {
    words[line].forEach((word, place) => {
      const isCurrent = line === side && place === at;
      word.classList.toggle("current", isCurrent);
      word.setAttribute("aria-selected", String(isCurrent));
      word.tabIndex = place === (line === side ? at : partner()) ? 0 : -1;
    });
  }
  readOut(partner());
}

/** @param {number} best of the other line */
function readOut(best) {
  const [row, column] = view.side === "rows" ? [view.at, best] : [best, view.at];
  const values = { row: view.map.rows.labels[row], column: view.map.columns.labels[column] };
  const parts = say("readout", { row: "\u0000row\u0000", column: "\u0000column\u0000" }).split("\u0000");
  const nodes = parts.map((part) => (part === "row" || part === "column" ? element("bdi", { textContent: values[part] }) : part));
  $("readout").replaceChildren(...nodes, " ", element("strong", { textContent: weight(best).toFixed(2) }));
}
