// The view: map, head, cell and language, and everything on the page that follows from them.

import { layout, mark, markCursor, paintCells, pen, writeLabels } from "./figure.js";
import { $, data, element } from "./given.js";
import { AttentionMap, Palette, fullTone } from "./numbers.js";
import { apart, markPlane, markPlaneCursor, planePlace } from "./plane.js";
import { markThumbnail, showNumbers } from "./overview.js";

/** @import { Place, Theme } from "./figure.js" */
/** @import { Key } from "./given.js" */
/** @import { Head } from "./numbers.js" */
/** @import { PlanePlace } from "./plane.js" */
/**
 * What the view has become on the screen; a text has no grid, and what lies in a plane has one of its own.
 * @typedef {object} Drawn
 * @property {Float32Array} weights
 * @property {number} tone
 * @property {Theme} theme
 * @property {HTMLElement[]} columnWords
 * @property {HTMLElement[]} rowWords
 * @property {{ place: Place, names: { rows: string, columns: string }, cursor: SVGGElement } | null} grid
 * @property {{ place: PlanePlace, cells: SVGGElement, cursor: SVGGElement } | null} plane
 */

const MOST_WORDS = 600;

export const maps = data.maps.map((raw) => new AttentionMap(raw, data));
export const attends = maps.some(({ holds }) => holds === "weight");
export const darkness = matchMedia("(prefers-color-scheme: dark)");
export const view = {
  map: maps[data.main],
  head: /** @type {Head} */ (null),
  row: 0,
  column: 0,
  language: navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en",
};
/** @type {Drawn} */
export let drawn;

/** @param {Key} key @param {Record<string, number>} [values] */
export function say(key, values = {}) {
  return data.strings[view.language][key].replace(/\{(\w+)\}/g, (_, name) => String(values[name]));
}

/** Titles and names are made of few words; a language that lists them gets them translated. @param {string} name */
export function translated(name) {
  let result = name;
  for (const [word, other] of Object.entries(data.strings[view.language].vocabulary)) {
    result = result.replace(new RegExp(`\\b${word}\\b`, "gi"), other);
  }
  return result;
}

/** @param {Head} head */
function headName(head) {
  return head === null ? say("mean") : say("headNumber", { n: head + 1 });
}

/** @param {AttentionMap} map @param {Head} head */
export function mapTitle(map, head) {
  return map.heads > 1 ? `${translated(map.title)} · ${headName(head)}` : translated(map.title);
}

/** @returns {Theme} */
function theme() {
  const css = getComputedStyle(document.documentElement);
  /** @param {string} name */
  const colour = (name) => css.getPropertyValue(`--${name}`).trim();
  const palette = new Palette(data.palette, darkness.matches);
  return { ink: colour("ink"), muted: colour("muted"), paper: colour("panel"), accent: colour("accent"), palette };
}

/** Everything that depends on the map, the head, the width, the theme or the language. */
export function show() {
  const { map, head } = view;
  const weights = map.head(head), tone = fullTone(weights, map.width);
  drawn = { weights, tone, theme: theme(), columnWords: [], rowWords: [], grid: null, plane: null };
  $("stage").hidden = map.isText || map.isPlane;
  $("lines").hidden = map.isText;
  $("plane").hidden = !map.isPlane;
  $("words").hidden = $("ranking").hidden = !map.isText;
  $("site").value = String(maps.indexOf(map));
  $("head").value = String(head ?? "mean");
  $("holds").textContent = say(map.holds);
  $("full-tone").textContent = tone.toFixed(2);
  const scale = Float32Array.from({ length: 256 }, (_, at) => at / 255);
  const legend = drawn.theme.palette.image({ cells: scale, rows: 1, columns: 256 }, 1);
  pen($("legend")).putImageData(legend, 0, 0);
  $("stage").ariaLabel = $("plane").ariaLabel = $("words").ariaLabel = `${say(map.holds)}: ${mapTitle(map, head)}`;
  const hints = [...(map.isPlane && map.rows.grid ? [say("pointAtPicture")] : []), say("keysMove")];
  $("hint").textContent = [...hints, ...(map.heads > 1 ? [say("keysHead")] : [])].join(" ");
  if (map.isText) showWords();
  else if (map.isPlane) showPlane();
  else showGrid();
  if (!$("numbers").hidden) showNumbers();
  markThumbnail();
  point(view.row, view.column);
}

function showGrid() {
  const { map } = view;
  const stage = $("stage"), canvas = $("grid"), ratio = devicePixelRatio || 1;
  const place = layout(map, stage.clientWidth);
  const width = stage.clientWidth, height = Math.ceil(place.bottom + 4);
  Object.assign(canvas, { width: Math.round(width * ratio), height: Math.round(height * ratio) });
  Object.assign(canvas.style, { width: `${width}px`, height: `${height}px` });
  const context = pen(canvas);
  context.scale(ratio, ratio);
  paintCells(context, map, drawn.weights, drawn.tone, place, drawn.theme.palette);

  stage.querySelector("svg")?.remove();
  const overlay = mark(stage, "svg", { width, height, "aria-hidden": "true" });
  const names = { rows: translated(map.rows.name), columns: translated(map.columns.name) };
  writeLabels(overlay, map, place, names, drawn.theme);
  drawn.grid = { place, names, cursor: mark(overlay, "g", {}) };
  $("columns-name").textContent = names.columns;
  $("rows-name").textContent = names.rows;
  drawn.columnWords = fillLine($("columns-line"), map.columns.labels, (column) => point(strongestRow(column), column));
  drawn.rowWords = fillLine($("rows-line"), map.rows.labels, (row) => point(row, strongestColumn(row)));
}

function showPlane() {
  const { map } = view;
  const place = planePlace(map, $("plane").clientWidth);
  const { width, height } = place;
  const figure = mark($("plane"), "svg", { width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
  $("plane").replaceChildren(figure);
  drawn.plane = { place, cells: mark(figure, "g", {}), cursor: mark(figure, "g", {}) };
  const columns = apart(map.columns), rows = map.height > 1 ? apart(map.rows) : [];
  $("lines").hidden = columns.length + rows.length === 0;
  $("columns-name").textContent = columns.length ? translated(map.columns.name) : "";
  $("rows-name").textContent = rows.length ? translated(map.rows.name) : "";
  drawn.columnWords = fillUnits($("columns-line"), map.columns.labels, columns, (column) => point(view.row, column));
  drawn.rowWords = fillUnits($("rows-line"), map.rows.labels, rows, (row) => point(row, strongestColumn(row)));
}

/**
 * A line of the units that do not lie in the plane; each stands in the result at its own place.
 * @param {HTMLElement} line @param {string[]} labels @param {number[]} units @param {(at: number) => void} onPoint
 */
function fillUnits(line, labels, units, onPoint) {
  /** @type {HTMLElement[]} */
  const words = [];
  const own = fillLine(line, units.map((unit) => labels[unit]), (at) => onPoint(units[at]));
  own.forEach((word, at) => { words[units[at]] = word; });
  return words;
}

/**
 * A line of words that answer to the pointer; very long texts are cut, and say so.
 * @param {HTMLElement} line @param {string[]} labels @param {(at: number) => void} onPoint
 */
function fillLine(line, labels, onPoint) {
  const words = labels.slice(0, MOST_WORDS).map((label, at) => {
    const word = element("bdi", { textContent: label });
    word.addEventListener("pointerenter", () => onPoint(at));
    word.addEventListener("pointerdown", () => onPoint(at));
    return word;
  });
  const hidden = labels.length - words.length;
  line.replaceChildren(...words, ...(hidden ? [say("moreWords", { n: hidden })] : []));
  return words;
}

function showWords() {
  const { weights, tone, theme: { palette } } = drawn;
  const labels = view.map.columns.labels;
  drawn.columnWords = fillLine($("words"), labels, (column) => point(0, column));
  drawn.columnWords.forEach((word, at) => word.append(element("small", { textContent: weights[at].toFixed(2) })));
  const order = Array.from(weights.keys()).sort((one, other) => weights[other] - weights[one]).slice(0, 8);
  $("strongest").replaceChildren(...order.map((at) => {
    const bar = element("i");
    bar.style.width = `${(100 * weights[at]) / tone}%`;
    bar.style.background = palette.css(0.35 + (0.5 * weights[at]) / tone);
    const word = element("bdi", { textContent: labels[at] });
    return element("li", {}, word, element("span", {}, bar), weights[at].toFixed(3));
  }));
}

/** Moves the cursor: readout, shaded words, ring around the cell. @param {number} row @param {number} column */
export function point(row, column) {
  const { map } = view;
  view.row = Math.min(map.height - 1, Math.max(0, row));
  view.column = Math.min(map.width - 1, Math.max(0, column));
  const values = { row: map.rows.labels[view.row], column: map.columns.labels[view.column] };
  const weight = drawn.weights[view.row * map.width + view.column];
  const sentence = data.strings[view.language].readout.split(/\{(\w+)\}/);
  const parts = sentence.map((part) => (part === "row" || part === "column" ? element("bdi", { textContent: values[part] }) : part));
  $("readout").replaceChildren(...parts, " ", element("strong", { textContent: weight.toFixed(2) }));
  shadeWords();
  if (drawn.grid) markCursor(drawn.grid.cursor, drawn.grid.place, view, drawn.theme);
  if (drawn.plane) pointInPlane(drawn.plane);
}

/** @param {NonNullable<Drawn["plane"]>} plane */
function pointInPlane({ place, cells, cursor }) {
  const { map, row } = view;
  if (cells.dataset.row !== String(row)) {
    cells.dataset.row = String(row);
    cells.replaceChildren();
    markPlane(cells, map, drawn.weights, row, drawn.tone, place, drawn.theme);
    if (!$("numbers").hidden) showNumbers();
  }
  markPlaneCursor(cursor, map, place, view, drawn.theme);
}

function shadeWords() {
  const { weights, tone, theme: { palette } } = drawn;
  const start = view.row * view.map.width;
  drawn.columnWords.forEach((word, at) => {
    const fraction = weights[start + at] / tone;
    word.style.background = palette.css(fraction);
    word.style.color = palette.ink(fraction);
    word.classList.toggle("current", at === view.column);
  });
  drawn.rowWords.forEach((word, at) => word.classList.toggle("current", at === view.row));
  if (!view.map.isText) requestAnimationFrame(revealWords);
}

/** Scrolls the current words into their own lines, never the page. */
function revealWords() {
  for (const word of [drawn.columnWords[view.column], drawn.rowWords[view.row]]) {
    const line = word?.parentElement;
    if (!line) continue;
    const outer = line.getBoundingClientRect(), inner = word.getBoundingClientRect();
    if (inner.top < outer.top) line.scrollTop += inner.top - outer.top - 4;
    else if (inner.bottom > outer.bottom) line.scrollTop += inner.bottom - outer.bottom + 4;
  }
}

/** @param {number} row */
export function strongestColumn(row) {
  const { weights } = drawn, { width } = view.map;
  return strongest(width, (column) => weights[row * width + column]);
}

/** @param {number} column */
export function strongestRow(column) {
  const { weights } = drawn, { width, height } = view.map;
  return strongest(height, (row) => weights[row * width + column]);
}

/** @param {number} count @param {(at: number) => number} weightAt */
function strongest(count, weightAt) {
  let best = 0;
  for (let at = 1; at < count; at++) if (weightAt(at) > weightAt(best)) best = at;
  return best;
}

/** A map opens on its strongest link; changing the head keeps the place. @param {AttentionMap} map @param {Head} head */
export function choose(map, head) {
  const isNew = map !== view.map;
  view.map = map;
  view.head = head !== null && head < map.heads && map.heads > 1 ? head : null;
  fillHeads();
  if (isNew) pointAtStrongest();
  show();
}

export function pointAtStrongest() {
  const weights = view.map.head(view.head);
  const best = strongest(weights.length, (at) => weights[at]);
  view.row = Math.floor(best / view.map.width);
  view.column = best % view.map.width;
}

/** @param {number} by */
export function stepHead(by) {
  const heads = headsOf(view.map), at = heads.indexOf(view.head);
  choose(view.map, heads[(at + by + heads.length) % heads.length]);
}

/** @param {AttentionMap} map @returns {Head[]} */
export function headsOf(map) {
  return map.heads > 1 ? [null, ...Array(map.heads).keys()] : [null];
}

export function fillHeads() {
  const options = headsOf(view.map).map((head) => {
    return element("option", { value: String(head ?? "mean"), textContent: headName(head) });
  });
  $("head").replaceChildren(...options);
  $("head-label").hidden = options.length === 1;
}
