// Beside the picture: a thumbnail of every layer and head, and the numbers of the current one as a table.

import { $, element } from "./given.js";
import { fullTone, pooled } from "./numbers.js";
import { placed } from "./plane.js";
import { choose, drawn, headsOf, mapTitle, maps, say, stepHead, translated, view } from "./view.js";

/** @import { AttentionMap, Grid, Head } from "./numbers.js" */

const THUMBNAIL = 40;
const LAYER = /\s*\blayer (\d+)/i;
const MOST_TABLE_SIDE = 32;
const MOST_TABLE_WORDS = 400;

/** @type {{ button: HTMLButtonElement, map: AttentionMap, head: Head }[]} */
let thumbnails = [];

/** `encoder: source → source` of every `encoder layer 3: source → source`. @param {string} title */
const withoutLayer = (title) => title.replace(LAYER, "").replace(/^:/, "").trim();

/** Maps whose titles differ only in the layer stand under each other: one row a layer, one column a head. */
export function showThumbnails() {
  thumbnails = [];
  $("overview").hidden = maps.length === 1 && maps[0].heads === 1;
  const groups = Map.groupBy(maps, (map) => `${withoutLayer(map.title)}|${map.heads}`);
  $("thumbnails").replaceChildren(...Array.from(groups.values(), (group) => {
    const heads = headsOf(group[0]);
    const names = heads.length > 1 ? ["", "x̄", ...heads.slice(1).map((_, at) => String(at + 1))] : [];
    const cells = group.flatMap((map) => {
      const layer = group.length > 1 ? map.title.match(LAYER)?.[1] ?? "" : "";
      return [element("span", { textContent: layer }), ...heads.map((head) => thumbnail(map, head))];
    });
    const header = names.map((name) => element("span", { textContent: name }));
    const grid = element("div", { className: "heads" }, ...header, ...cells);
    grid.style.setProperty("--heads", String(heads.length));
    grid.classList.toggle("flat", group[0].isText && heads.length === 1);
    const title = group.length > 1 ? withoutLayer(group[0].title) : group[0].title;
    return element("section", {}, element("h3", { textContent: translated(title) }), grid);
  }));
  markThumbnail();
}

/** @param {AttentionMap} map @param {Head} head */
function thumbnail(map, head) {
  const weights = map.head(head);
  const small = map.isPlane ? seen(map, weights) : pooled(weights, map.height, map.width, THUMBNAIL);
  const image = element("img", { src: drawn.theme.palette.bitmap(small, map.isPlane ? fullTone(small.cells, small.cells.length) : fullTone(weights, map.width)), alt: "" });
  const button = element("button", { type: "button", title: mapTitle(map, head) }, image);
  button.setAttribute("aria-label", mapTitle(map, head));
  button.addEventListener("click", () => choose(map, head));
  thumbnails.push({ button, map, head });
  return button;
}

/** What all rows look at, on average. @param {AttentionMap} map @param {Float32Array} weights @returns {Grid} */
function seen(map, weights) {
  const [rows, columns] = map.columns.grid ?? [1, 1], units = placed(map.columns);
  const cells = new Float32Array(units.length);
  for (let row = 0; row < map.height; row++) {
    units.forEach((column, at) => { cells[at] += weights[row * map.width + column] / map.height; });
  }
  return { cells, rows, columns };
}

export function markThumbnail() {
  for (const { button, map, head } of thumbnails) {
    const isCurrent = map === view.map && head === view.head;
    button.setAttribute("aria-pressed", String(isCurrent));
    button.tabIndex = isCurrent ? 0 : -1;
  }
}

/** @type {Record<string, number>} */
const SIDES = { ArrowLeft: -1, ArrowRight: 1 };
/** @type {Record<string, number>} */
const LEVELS = { ArrowUp: -1, ArrowDown: 1 };

/** Left and right go through the heads, up and down through the maps. @param {KeyboardEvent} event */
export function stepThumbnail(event) {
  const side = SIDES[event.key], level = LEVELS[event.key];
  if (side) stepHead(side);
  else if (level) choose(maps[Math.min(maps.length - 1, Math.max(0, maps.indexOf(view.map) + level))], view.head);
  else return;
  event.preventDefault();
  thumbnails.find(({ button }) => button.tabIndex === 0)?.button.focus();
}

export function showNumbers() {
  const { map } = view, { weights } = drawn;
  if (map.isPlane) return showPlaneNumbers(map, weights);
  const rows = Math.min(map.height, MOST_TABLE_SIDE);
  const columns = Math.min(map.width, map.isText ? MOST_TABLE_WORDS : MOST_TABLE_SIDE);
  /** @param {string} label @param {"row" | "col"} scope */
  const heading = (label, scope) => element("th", { scope }, element("bdi", { textContent: label }));
  /** @param {number} row @param {number} column */
  const number = (row, column) => element("td", { textContent: weights[row * map.width + column].toFixed(3) });
  /** @param {number} count */
  const range = (count) => Array.from({ length: count }, (_, at) => at);
  const body = map.isText
    ? range(columns).map((at) => element("tr", {}, heading(map.columns.labels[at], "row"), number(0, at)))
    : [
        element("tr", {}, element("td"), ...range(columns).map((at) => heading(map.columns.labels[at], "col"))),
        ...range(rows).map((row) => {
          const numbers = range(columns).map((at) => number(row, at));
          return element("tr", {}, heading(map.rows.labels[row], "row"), ...numbers);
        }),
      ];
  const isCapped = rows < map.height || columns < map.width;
  const capped = isCapped ? say("capped", { rows, columns, allRows: map.height, allColumns: map.width }) : "";
  const caption = element("caption", { textContent: `${mapTitle(map, view.head)}. ${capped}` });
  $("numbers").replaceChildren(element("table", {}, caption, ...body));
  $("numbers").setAttribute("aria-label", say("numbers"));
}

/** The weights of the current row as they lie in the plane. @param {AttentionMap} map @param {Float32Array} weights */
function showPlaneNumbers(map, weights) {
  const [allRows, allColumns] = map.columns.grid ?? [1, 1], units = placed(map.columns);
  const rows = Math.min(allRows, MOST_TABLE_SIDE), columns = Math.min(allColumns, MOST_TABLE_SIDE);
  const lines = Array.from({ length: rows }, (_, row) => element("tr", {}, ...Array.from({ length: columns }, (_, column) => {
    const weight = weights[view.row * map.width + units[row * allColumns + column]];
    return element("td", { textContent: weight.toFixed(3) });
  })));
  const isCapped = rows < allRows || columns < allColumns;
  const capped = isCapped ? say("capped", { rows, columns, allRows, allColumns }) : "";
  const caption = element("caption", { textContent: `${mapTitle(map, view.head)}: ${map.rows.labels[view.row]}. ${capped}` });
  $("numbers").replaceChildren(element("table", {}, caption, ...lines));
  $("numbers").setAttribute("aria-label", say("numbers"));
}
