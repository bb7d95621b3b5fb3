// The figure: where cells and labels stand, and the marks they are made of. The page and the saved file share it.

import { pooled } from "./numbers.js";

/** @import { AttentionMap, Palette } from "./numbers.js" */
/** @typedef {{ ink: string, muted: string, paper: string, accent: string, palette: Palette }} Theme */
/** @typedef {Record<string, string | number>} Look attributes of a mark */
/** @typedef {ReturnType<typeof layout>} Place */

export const SVG = "http://www.w3.org/2000/svg";
export const FONT = getComputedStyle(document.body).fontFamily;
const LABEL = 13;
const MOST_VECTOR_CELLS = 20000;
const LEAST_ROOM = 240; // a frame that is not shown yet has no width at all
const WIDE = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\u3000-\u303f\uff00-\uff60]/u;
const characters = new Intl.Segmenter(undefined, { granularity: "grapheme" });
const brush = pen(document.createElement("canvas"));

/** @param {HTMLCanvasElement} canvas */
export function pen(canvas) {
  return /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
}

/** @param {string} text */
function graphemes(text) {
  return Array.from(characters.segment(text), ({ segment }) => segment);
}

/** @param {string} text @param {number} [size] */
export function measure(text, size = LABEL) {
  brush.font = `${size}px ${FONT}`;
  return brush.measureText(text).width;
}

/** @param {string} text @param {number} limit @param {number} [size] */
export function shortened(text, limit, size = LABEL) {
  if (measure(text, size) <= limit) return text;
  const parts = graphemes(text.slice(0, 200));
  while (parts.length && measure(parts.join("") + "…", size) > limit) parts.pop();
  return parts.join("") + "…";
}

/** Whether a narrow column label is better stacked (mostly Chinese) than turned on its side. @param {string} text */
function stacks(text) {
  const parts = graphemes(text);
  return 2 * parts.filter((part) => WIDE.test(part)).length >= parts.length;
}

/**
 * @template {keyof SVGElementTagNameMap} Name
 * @param {Element} parent @param {Name} name @param {Look} attributes @param {string} [content]
 */
export function mark(parent, name, attributes, content) {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, String(value));
  if (content !== undefined) node.textContent = content;
  parent.append(node);
  return node;
}

/** @param {Element} parent @param {string} content @param {number} x @param {number} y @param {Look} [look] */
export function write(parent, content, x, y, look = {}) {
  const { turned, ...rest } = /** @type {Look} */ ({ "font-size": LABEL, ...look });
  if (turned) rest.transform = `rotate(${turned} ${x} ${y})`;
  return mark(parent, "text", { x, y, ...rest }, content);
}

/**
 * Sizes of everything for a map drawn `width` pixels wide: cells as large as fit, labels only where legible.
 * @param {AttentionMap} map @param {number} width
 */
export function layout(map, width) {
  const room = Math.max(width, LEAST_ROOM);
  const rowLabels = map.rows.labels.map((label) => shortened(label, Math.min(150, room * 0.3)));
  const columnLabels = map.columns.labels.map((label) => shortened(label, Math.min(118, room * 0.3)));
  const left = Math.max(...rowLabels.map((label) => measure(label))) + 34;
  const legibleRow = map.height <= 64 ? 16 : 0;
  let cellWidth = Math.min(64, (room - left - 8) / map.width);
  const columns = columnStyle(columnLabels, cellWidth);
  cellWidth = Math.min(cellWidth, (room - left - 8 - columns.overhang) / map.width);
  const cellHeight = Math.min(40, Math.max(cellWidth, legibleRow), Math.max(760 / map.height, legibleRow));
  const top = 26 + columns.height + 8;
  return {
    left, top, cellWidth, cellHeight, rowLabels, columnLabels,
    angle: columns.angle,
    everyColumn: Math.ceil((columns.angle === -50 ? LABEL * 1.45 : LABEL + 2) / cellWidth),
    everyRow: Math.ceil((LABEL + 2) / cellHeight),
    right: left + map.width * cellWidth,
    bottom: top + map.height * cellHeight,
  };
}

/**
 * Side by side if all fit over their cells; else Chinese stacked beside upturned Latin, or all slanted.
 * @param {string[]} labels @param {number} cellWidth
 */
function columnStyle(labels, cellWidth) {
  const lengths = labels.map((label) => measure(label));
  const longest = Math.max(...lengths);
  if (longest <= cellWidth - 4) return { angle: 0, height: LABEL, overhang: 0 };
  if (!labels.some(stacks)) return { angle: -50, height: longest * 0.77 + LABEL * 0.6, overhang: longest * 0.64 };
  const tall = labels.map((label, at) => (stacks(label) ? graphemes(label).length * LABEL * 1.1 : lengths[at]));
  return { angle: -90, height: Math.max(...tall), overhang: 0 };
}

/**
 * A label over its column: flat if all fit, else Chinese stacked and upright, everything else turned.
 * @param {Element} parent @param {Place} place @param {number} column @param {Look} look
 */
function writeColumn(parent, place, column, look) {
  const label = place.columnLabels[column];
  const x = place.left + (column + 0.5) * place.cellWidth, y = place.top - 8;
  if (place.angle === 0) return write(parent, label, x, y, { "text-anchor": "middle", ...look });
  if (!stacks(label)) return write(parent, label, x + LABEL * 0.35, y, { turned: place.angle, ...look });
  const text = write(parent, "", x, y, { "text-anchor": "middle", ...look });
  const parts = graphemes(label);
  parts.forEach((part, at) => {
    mark(text, "tspan", { x, y: y - (parts.length - 1 - at) * LABEL * 1.1 }, part);
  });
  return text;
}

/** @param {Element} parent @param {Place} place @param {number} row @param {Look} look */
function writeRow(parent, place, row, look) {
  const y = place.top + (row + 0.5) * place.cellHeight + LABEL * 0.35;
  return write(parent, place.rowLabels[row], place.left - 9, y, { "text-anchor": "end", ...look });
}

/**
 * Axis names and as many labels as can be read.
 * @param {Element} parent @param {AttentionMap} map @param {Place} place
 * @param {{ rows: string, columns: string }} names @param {Theme} theme
 */
export function writeLabels(parent, map, place, names, theme) {
  const quiet = { "font-size": 11, fill: theme.muted, "text-anchor": "middle" };
  write(parent, names.columns, (place.left + place.right) / 2, 12, quiet);
  write(parent, names.rows, 12, (place.top + place.bottom) / 2, { ...quiet, turned: -90 });
  for (let at = 0; at < map.width; at += place.everyColumn) writeColumn(parent, place, at, { fill: theme.ink });
  for (let at = 0; at < map.height; at += place.everyRow) writeRow(parent, place, at, { fill: theme.ink });
}

/**
 * The cell under the cursor, its row and its column; their labels are shown even where labels are thinned.
 * @param {Element} parent @param {Place} place @param {{ row: number, column: number }} cursor @param {Theme} theme
 */
export function markCursor(parent, place, { row, column }, { accent, paper }) {
  const { left, top, right, bottom, cellWidth, cellHeight } = place;
  const cell = { x: left + column * cellWidth, y: top + row * cellHeight, width: cellWidth, height: cellHeight };
  const line = { fill: "none", stroke: accent }, faint = { ...line, "stroke-opacity": 0.45 };
  const strong = { fill: accent, "font-weight": 650, stroke: paper, "stroke-width": 5, "paint-order": "stroke" };
  parent.replaceChildren();
  mark(parent, "rect", { ...faint, ...cell, x: left, width: right - left });
  mark(parent, "rect", { ...faint, ...cell, y: top, height: bottom - top });
  mark(parent, "rect", { ...line, ...cell, "stroke-width": 2.5, rx: 3 });
  writeRow(parent, place, row, { ...strong, "stroke-linejoin": "round" });
  writeColumn(parent, place, column, { ...strong, "stroke-linejoin": "round" });
}

/**
 * Cells on a canvas already scaled to CSS pixels: rounded boxes while they are large, one image beyond.
 * @param {CanvasRenderingContext2D} context @param {AttentionMap} map @param {Float32Array} weights @param {number} tone
 * @param {Place} place @param {Palette} palette
 */
export function paintCells(context, map, weights, tone, place, palette) {
  const { left, top, cellWidth, cellHeight } = place;
  if (Math.min(cellWidth, cellHeight) < 7) {
    const { a: ratio } = context.getTransform();
    const most = Math.ceil(Math.max(place.right - left, place.bottom - top) * ratio);
    const image = palette.image(pooled(weights, map.height, map.width, most), tone);
    const offscreen = new OffscreenCanvas(image.width, image.height);
    offscreen.getContext("2d")?.putImageData(image, 0, 0);
    context.imageSmoothingEnabled = false;
    context.drawImage(offscreen, left, top, place.right - left, place.bottom - top);
    return;
  }
  const gap = cellWidth > 14 ? 2 : 1;
  for (let row = 0; row < map.height; row++) {
    for (let column = 0; column < map.width; column++) {
      context.fillStyle = palette.css(weights[row * map.width + column] / tone);
      context.beginPath();
      const x = left + column * cellWidth, y = top + row * cellHeight;
      context.roundRect(x + gap / 2, y + gap / 2, cellWidth - gap, cellHeight - gap, gap + 1);
      context.fill();
    }
  }
}

/**
 * The same cells as vector paths, one for each colour; too many become an image.
 * @param {Element} parent @param {AttentionMap} map @param {Float32Array} weights @param {number} tone
 * @param {Place} place @param {Palette} palette
 */
export function markCells(parent, map, weights, tone, place, palette) {
  if (weights.length > MOST_VECTOR_CELLS) {
    const image = palette.image(pooled(weights, map.height, map.width, 1024), tone);
    const canvas = Object.assign(document.createElement("canvas"), { width: image.width, height: image.height });
    pen(canvas).putImageData(image, 0, 0);
    const extent = { x: place.left, y: place.top, width: place.right - place.left, height: place.bottom - place.top };
    mark(parent, "image", { ...extent, preserveAspectRatio: "none", href: canvas.toDataURL() });
    return;
  }
  /** @type {Map<string, string>} */
  const paths = new Map();
  const width = (place.cellWidth - 1).toFixed(2), height = (place.cellHeight - 1).toFixed(2);
  weights.forEach((weight, at) => {
    const x = (place.left + (at % map.width) * place.cellWidth).toFixed(2);
    const y = (place.top + Math.floor(at / map.width) * place.cellHeight).toFixed(2);
    const colour = palette.css(weight / tone);
    paths.set(colour, `${paths.get(colour) ?? ""}M${x} ${y}h${width}v${height}h-${width}z`);
  });
  for (const [fill, d] of paths) mark(parent, "path", { fill, d, "shape-rendering": "crispEdges" });
}
