// A map to the patches of a picture: the picture, clear where one row of the map looks, beside the same as shades.

import { $, element } from "/web/dom.js";
import { mark } from "/web/figure.js";
import { say, translated } from "/web/language.js";
import { Palette, fullTone } from "/web/numbers.js";
import { apart, cellAt, markPlane, markPlaneCursor, placed, planePlace } from "/web/plane.js";

/** @import { AttentionMap } from "/web/numbers.js" */
/** @import { Theme } from "/web/figure.js" */
/** @import { PlanePlace } from "/web/plane.js" */

/** @type {{ map: AttentionMap, weights: Float32Array, theme: Theme, place: PlanePlace, cells: Element, cursor: Element, row: number, column: number }} */
let view;

export function start() {
  $("plane").addEventListener("pointermove", ({ clientX, clientY }) => pointAt(clientX, clientY, false));
  $("plane").addEventListener("pointerdown", ({ clientX, clientY }) => pointAt(clientX, clientY, true));
  $("plane").addEventListener("keydown", step);
}

/** @param {AttentionMap} map @param {Float32Array} weights @param {string} palette @param {boolean} isDark */
export function show(map, weights, palette, isDark) {
  const css = getComputedStyle(document.documentElement);
  /** @param {string} name */
  const colour = (name) => css.getPropertyValue(`--${name}`).trim();
  const theme = {
    ink: colour("ink"), muted: colour("muted"), paper: colour("panel"), accent: colour("accent"),
    palette: new Palette(palette, isDark),
  };
  const place = planePlace(map, $("plane").clientWidth);
  $("plane").replaceChildren();
  const extent = { width: place.width, height: place.height, viewBox: `0 0 ${place.width} ${place.height}` };
  const svg = mark($("plane"), "svg", { ...extent, "aria-hidden": "true" });
  const [first] = apart(map.rows);
  const row = view?.map === map ? view.row : first ?? 0;
  view = { map, weights, theme, place, cells: mark(svg, "g", {}), cursor: mark(svg, "g", {}), row, column: 0 };
  fillRows();
  look(row);
}

/** The rows that do not lie in the picture, where there are several to choose from. */
function fillRows() {
  const { map } = view, rows = apart(map.rows);
  const isChoice = rows.length > 1 || map.rows.grid !== undefined;
  $("rows-name").textContent = isChoice ? translated(map.rows.name) : "";
  $("rows").replaceChildren(...(isChoice ? rows : []).map((row) => {
    const word = element("bdi", { textContent: map.rows.labels[row], role: "option", tabIndex: 0 });
    word.dataset.row = String(row);
    for (const kind of ["pointerenter", "pointerdown", "focus"]) word.addEventListener(kind, () => look(row));
    return word;
  }));
}

/** What one row looks at, beginning with where it looks most. @param {number} row */
function look(row) {
  const { map, weights, theme, place, cells } = view;
  view.row = row;
  cells.replaceChildren();
  markPlane(cells, map, weights, row, fullTone(weights, map.width), place, theme);
  for (const word of $("rows").querySelectorAll("bdi")) {
    word.classList.toggle("current", word.dataset.row === String(row));
    word.setAttribute("aria-selected", String(word.dataset.row === String(row)));
  }
  const units = placed(map.columns);
  point(units.reduce((best, unit) => (weight(unit) > weight(best) ? unit : best), units[0]));
}

/** @param {number} column */
const weight = (column) => view.weights[view.row * view.map.width + column];

/** @param {number} column */
function point(column) {
  const { map, row, place, cursor, theme } = view;
  view.column = column;
  markPlaneCursor(cursor, map, place, view, theme);
  const values = { row: map.rows.labels[row], column: map.columns.labels[column] };
  const parts = say("readout", { row: "\u0000row\u0000", column: "\u0000column\u0000" }).split("\u0000");
  const nodes = parts.map((part) => (part === "row" || part === "column" ? element("bdi", { textContent: values[part] }) : part));
  $("readout").replaceChildren(...nodes, " ", element("strong", { textContent: weight(column).toFixed(2) }));
}

/** A press in the picture chooses the patch that looks, where patches look; else the one that is looked at is shown. @param {number} x @param {number} y @param {boolean} isPress */
function pointAt(x, y, isPress) {
  const frame = $("plane").getBoundingClientRect(), { map, place } = view;
  const found = cellAt(place, x - frame.left, y - frame.top);
  if (!found) return;
  if (isPress && found.isPicture && map.rows.grid) look(placed(map.rows)[found.at]);
  else point(placed(map.columns)[found.at]);
}

/** @param {KeyboardEvent} event */
function step(event) {
  const [rows, columns] = view.map.columns.grid ?? [1, 1];
  const by = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
  if (!by) return;
  event.preventDefault();
  const units = placed(view.map.columns), at = Math.max(0, units.indexOf(view.column));
  const row = Math.min(rows - 1, Math.max(0, Math.floor(at / columns) + by[0]));
  const column = Math.min(columns - 1, Math.max(0, (at % columns) + by[1]));
  point(units[row * columns + column]);
}
