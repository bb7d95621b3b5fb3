// The page: fixed texts, events, and the start.

import { mark, markCells, write, writeLabels } from "./figure.js";
import { $, data, element } from "./given.js";
import { cellAt, markPlane, placed } from "./plane.js";
import { showNumbers, showThumbnails, stepThumbnail } from "./overview.js";
import { composeFile, savePng, saveSvg } from "./save.js";
import {
  attends, choose, darkness, drawn, fillHeads, mapTitle, maps, point, pointAtStrongest, say, show, stepHead, strongestColumn,
  strongestRow, translated, view,
} from "./view.js";

/** @import { Key } from "./given.js" */

function showTexts() {
  document.documentElement.lang = view.language === "zh" ? "zh-Hans" : "en";
  for (const node of document.querySelectorAll("[data-text]")) {
    node.textContent = say(/** @type {Key} */ (node.getAttribute("data-text")));
  }
  $("heading").textContent = say(attends ? "heading" : "headingMeasured");
  $("site-name").textContent = say(attends ? "layer" : "map");
  $("overview-heading").textContent = say(attends ? "overview" : "maps");
  $("caveat").hidden = !attends;
  $("about").textContent = `${translated(data.task)} · ${data.model}`;
  $("input").textContent = data.input;
  $("output").textContent = data.output;
  $("languages").setAttribute("aria-label", say("language"));
  $("languages").replaceChildren(...Object.entries(data.strings).map(([code, { name }]) => {
    const button = element("button", { type: "button", textContent: name, lang: code });
    button.setAttribute("aria-pressed", String(code === view.language));
    button.addEventListener("click", () => speak(code));
    return button;
  }));
  const options = maps.map((map, at) => element("option", { value: String(at), textContent: translated(map.title) }));
  $("site").replaceChildren(...options);
  showTrust();
}

function showTrust() {
  const { trust } = data;
  $("measured").hidden = !trust;
  $("meter").hidden = trust?.score == null;
  if (trust) $("measured").textContent = trust.sentences[view.language];
  if (trust?.score == null) return;
  $("score").textContent = trust.score.toFixed(2).replace("-", "−");
  const reach = 6 + 108 * Math.max(0, trust.score);
  $("needle").setAttribute("cx", String(reach));
  $("reach").setAttribute("d", `M6 6H${reach}`);
}

/** @param {string} language */
function speak(language) {
  view.language = language;
  showTexts();
  fillHeads();
  show();
  showThumbnails();
  for (const button of $("languages").querySelectorAll("button")) if (button.lang === language) button.focus();
}

/** Over the cells both are under the pointer; over a label the other is its strongest partner. @param {PointerEvent} event */
function pointAt(event) {
  if (!drawn.grid) return;
  const { map } = view, { place } = drawn.grid;
  const frame = $("stage").getBoundingClientRect();
  const column = Math.floor((event.clientX - frame.left - place.left) / place.cellWidth);
  const row = Math.floor((event.clientY - frame.top - place.top) / place.cellHeight);
  const hasColumn = column >= 0 && column < map.width, hasRow = row >= 0 && row < map.height;
  if (hasRow && hasColumn) point(row, column);
  else if (hasRow && column < 0) point(row, strongestColumn(row));
  else if (hasColumn && row < 0) point(strongestRow(column), column);
}

/** In the picture the unit that looks is chosen, if it lies in the plane too; else the one that is looked at. @param {PointerEvent} event */
function pointAtPlane(event) {
  if (!drawn.plane) return;
  const { map } = view, frame = $("plane").getBoundingClientRect();
  const found = cellAt(drawn.plane.place, event.clientX - frame.left, event.clientY - frame.top);
  if (!found) return;
  if (found.isPicture && map.rows.grid) {
    const row = placed(map.rows)[found.at];
    point(row, strongestColumn(row));
  } else point(view.row, placed(map.columns)[found.at]);
}

/** @param {[number, number]} move rows and columns */
function stepInPlane([down, across]) {
  const [rows, columns] = view.map.columns.grid ?? [1, 1], units = placed(view.map.columns);
  const at = Math.max(0, units.indexOf(view.column));
  const row = Math.min(rows - 1, Math.max(0, Math.floor(at / columns) + down));
  const column = Math.min(columns - 1, Math.max(0, (at % columns) + across));
  point(view.row, units[row * columns + column]);
}

/** @type {Record<string, [number, number]>} */
const MOVES = {
  ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0], Home: [0, -Infinity], End: [0, Infinity],
};

/** @param {KeyboardEvent} event */
function step(event) {
  const move = MOVES[event.key];
  if (!move) return;
  event.preventDefault();
  if (view.map.isPlane) stepInPlane(move);
  else point(view.row + move[0], view.column + move[1]);
}

/** The picture on screen as a file of its own. */
function currentFile() {
  const { map, head, row } = view, { weights, tone, theme, grid, plane } = drawn;
  return composeFile({
    title: mapTitle(map, head),
    about: $("about").textContent ?? "",
    captions: [...(data.trust ? [data.trust.sentences[view.language]] : []), ...(map.holds === "weight" ? [say("caveat")] : [])],
    tone,
    theme,
    body: plane ? (group) => {
      markPlane(group, map, weights, row, tone, plane.place, theme);
      return plane.place;
    } : !grid ? markWords : (group) => {
      const { place, names } = grid;
      writeLabels(group, map, place, names, theme);
      markCells(group, map, weights, tone, place, theme.palette);
      return { width: place.right + 8, height: place.bottom };
    },
  });
}

/** Words stand in the file where the browser has set them. @param {SVGGElement} group */
function markWords(group) {
  const frame = $("words").getBoundingClientRect();
  for (const word of drawn.columnWords) {
    const { left, top, width, height } = word.getBoundingClientRect();
    const x = left - frame.left, y = top - frame.top, look = { fill: word.style.color, "text-anchor": "middle" };
    mark(group, "rect", { x, y, width, height, rx: 6, fill: word.style.background });
    write(group, word.firstChild?.textContent ?? "", x + width / 2, y + 24, { ...look, "font-size": 17 });
    write(group, word.lastChild?.textContent ?? "", x + width / 2, y + height - 8, { ...look, "font-size": 11 });
  }
  return { width: frame.width, height: frame.height };
}

function fileName() {
  return `attention-${view.map.site}-${view.head === null ? "mean" : `head${view.head + 1}`}`;
}

function listen() {
  $("site").addEventListener("change", () => choose(maps[Number($("site").value)], view.head));
  $("head").addEventListener("change", () => choose(view.map, $("head").value === "mean" ? null : Number($("head").value)));
  $("stage").addEventListener("pointermove", pointAt);
  $("stage").addEventListener("pointerdown", pointAt);
  $("stage").addEventListener("keydown", step);
  $("words").addEventListener("keydown", step);
  $("plane").addEventListener("keydown", step);
  $("plane").addEventListener("pointermove", pointAtPlane);
  $("plane").addEventListener("pointerdown", pointAtPlane);
  $("thumbnails").addEventListener("keydown", stepThumbnail);
  $("save-svg").addEventListener("click", () => saveSvg(currentFile(), fileName()));
  $("save-png").addEventListener("click", () => savePng(currentFile(), fileName()));
  $("numbers-toggle").addEventListener("click", () => {
    $("numbers").hidden = !$("numbers").hidden;
    $("numbers-toggle").setAttribute("aria-expanded", String(!$("numbers").hidden));
    if (!$("numbers").hidden) showNumbers();
  });
  document.addEventListener("keydown", ({ key, ctrlKey, metaKey, altKey }) => {
    if (!ctrlKey && !metaKey && !altKey && (key === "[" || key === "]")) stepHead(key === "[" ? -1 : 1);
  });
  darkness.addEventListener("change", () => { show(); showThumbnails(); });
  let width = $("picture").clientWidth;
  new ResizeObserver(() => {
    if ($("picture").clientWidth !== width) requestAnimationFrame(show);
    width = $("picture").clientWidth;
  }).observe($("picture"));
}

async function start() {
  showTexts();
  await view.map.ready;
  fillHeads();
  pointAtStrongest();
  show();
  listen();
  await Promise.all(maps.map((map) => map.ready));
  showThumbnails();
  document.documentElement.dataset.ready = "";
}

start();
