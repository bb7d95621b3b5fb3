// A map to units that lie in a plane: the picture, clear where a row looks, and the same weights as shades.

import { mark } from "./figure.js";

/** @import { AttentionMap, Axis } from "./numbers.js" */
/** @import { Theme } from "./figure.js" */
/** @typedef {{ x: number, y: number }} Corner */
/** @typedef {{ cell: number, rows: number, columns: number, picture: Corner | null, shades: Corner, width: number, height: number }} PlanePlace */

const MOST_SIDE = 420;
const LEAST_PLANE = 200;
const ROOM_FOR_TWO = 420;
const PLANE_GAP = 20;
const VEIL = 0.75;
const VEIL_STEPS = 32;

/** The units of an axis that lie in the plane, in reading order. @param {Axis} axis */
export function placed(axis) {
  const fixed = new Set(axis.fixed ?? []);
  return Array.from(axis.labels.keys()).filter((unit) => !fixed.has(unit));
}

/** Those that do not: labels, class tokens. @param {Axis} axis */
export function apart(axis) {
  return axis.grid ? axis.fixed ?? [] : Array.from(axis.labels.keys());
}

/** Picture and shades side by side, or below each other where there is little room. @param {AttentionMap} map @param {number} width @returns {PlanePlace} */
export function planePlace(map, width) {
  const [rows, columns] = map.columns.grid ?? [1, 1], hasPicture = map.columns.picture !== undefined;
  const room = Math.max(width, LEAST_PLANE), isBeside = hasPicture && room >= ROOM_FOR_TWO;
  const cell = Math.min(MOST_SIDE, isBeside ? (room - PLANE_GAP) / 2 : room) / Math.max(rows, columns);
  const across = cell * columns, down = cell * rows;
  const shades = isBeside ? { x: across + PLANE_GAP, y: 0 } : { x: 0, y: hasPicture ? down + PLANE_GAP : 0 };
  const picture = hasPicture ? { x: 0, y: 0 } : null;
  return { cell, rows, columns, picture, shades, width: shades.x + across, height: shades.y + down };
}

/**
 * One path of all cells that look alike.
 * @param {Element} parent @param {PlanePlace} place @param {Corner} corner @param {number[]} looks by cell
 * @param {(look: number) => Record<string, string | number>} attributes
 */
function markAlike(parent, place, corner, looks, attributes) {
  /** @type {Map<number, string>} */
  const paths = new Map();
  const side = place.cell.toFixed(2);
  looks.forEach((look, at) => {
    const x = (corner.x + (at % place.columns) * place.cell).toFixed(2);
    const y = (corner.y + Math.floor(at / place.columns) * place.cell).toFixed(2);
    paths.set(look, `${paths.get(look) ?? ""}M${x} ${y}h${side}v${side}h-${side}z`);
  });
  for (const [look, d] of paths) mark(parent, "path", { d, "shape-rendering": "crispEdges", ...attributes(look) });
}

/**
 * @param {Element} parent @param {AttentionMap} map @param {Float32Array} weights @param {number} row
 * @param {number} tone @param {PlanePlace} place @param {Theme} theme
 */
export function markPlane(parent, map, weights, row, tone, place, theme) {
  const own = placed(map.columns).map((column) => weights[row * map.width + column]);
  const { palette } = theme, most = Math.max(...own, 1e-9);
  if (place.picture) {
    const extent = { ...place.picture, width: place.cell * place.columns, height: place.cell * place.rows };
    const href = `data:image/png;base64,${map.columns.picture}`;
    mark(parent, "image", { ...extent, href, preserveAspectRatio: "none", "image-rendering": "pixelated" });
    const steps = own.map((weight) => Math.round((1 - weight / most) * VEIL_STEPS));
    markAlike(parent, place, place.picture, steps, (step) => ({
      fill: theme.paper, "fill-opacity": ((VEIL * step) / VEIL_STEPS).toFixed(3),
    }));
  }
  const shades = own.map((weight) => palette.index(weight / tone));
  markAlike(parent, place, place.shades, shades, (shade) => ({ fill: palette.css(shade / 255) }));
}

/**
 * Rings around the unit that is looked at, and around the one that looks.
 * @param {Element} parent @param {AttentionMap} map @param {PlanePlace} place
 * @param {{ row: number, column: number }} cursor @param {Theme} theme
 */
export function markPlaneCursor(parent, map, place, { row, column }, { accent }) {
  parent.replaceChildren();
  /** @param {Corner | null} corner @param {number} at @param {Record<string, string | number>} look */
  const ring = (corner, at, look) => {
    if (!corner || at < 0) return;
    const x = corner.x + (at % place.columns) * place.cell, y = corner.y + Math.floor(at / place.columns) * place.cell;
    mark(parent, "rect", { x, y, width: place.cell, height: place.cell, rx: 2, fill: "none", stroke: accent, "stroke-width": 2.5, ...look });
  };
  const at = placed(map.columns).indexOf(column);
  ring(place.picture, at, {});
  ring(place.shades, at, {});
  if (map.rows.grid) ring(place.picture, placed(map.rows).indexOf(row), { "stroke-dasharray": "4 3" });
}

/**
 * What is at a point: whether it is in the picture, and which cell.
 * @param {PlanePlace} place @param {number} x @param {number} y
 */
export function cellAt(place, x, y) {
  for (const corner of [place.picture, place.shades]) {
    if (!corner) continue;
    const column = Math.floor((x - corner.x) / place.cell), row = Math.floor((y - corner.y) / place.cell);
    const isInside = column >= 0 && column < place.columns && row >= 0 && row < place.rows;
    if (isInside) return { isPicture: corner === place.picture, at: row * place.columns + column };
  }
  return null;
}
