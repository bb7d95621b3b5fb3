// The view: map, head, cell and language, and everything on the page that follows from them.

const MOST_WORDS = 600;

const data = JSON.parse(document.getElementById("data").textContent);
const maps = data.maps.map((raw) => new AttentionMap(raw, data));
const darkness = matchMedia("(prefers-color-scheme: dark)");
const view = {
  map: maps[data.main],
  head: null,
  row: 0,
  column: 0,
  language: navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en",
};
let drawn = {};

const $ = (id) => document.getElementById(id);

function element(name, properties = {}, ...children) {
  const node = Object.assign(document.createElement(name), properties);
  node.append(...children);
  return node;
}

function say(key, values = {}) {
  const sentence = data.strings[view.language][key];
  return sentence.replace(/\{(\w+)\}/g, (_, name) => values[name]);
}

/** Titles and names are made of few words; a language that lists them gets them translated. */
function translated(name) {
  let result = name;
  for (const [word, other] of Object.entries(data.strings[view.language].vocabulary)) {
    result = result.replace(new RegExp(`\\b${word}\\b`, "gi"), other);
  }
  return result;
}

function headName(head) {
  return head === null ? say("mean") : say("headNumber", { n: head + 1 });
}

function mapTitle(map, head) {
  return map.heads > 1 ? `${translated(map.title)} · ${headName(head)}` : translated(map.title);
}

function theme() {
  const css = getComputedStyle(document.documentElement);
  const colour = (name) => css.getPropertyValue(`--${name}`).trim();
  const palette = new Palette(data.palette, darkness.matches);
  return { ink: colour("ink"), muted: colour("muted"), paper: colour("panel"), accent: colour("accent"), palette };
}

/** Everything that depends on the map, the head, the width, the theme or the language. */
function show() {
  const { map, head } = view;
  const weights = map.head(head), tone = fullTone(weights, map.width);
  drawn = { weights, tone, theme: theme() };
  $("stage").hidden = $("lines").hidden = map.isText;
  $("words").hidden = $("ranking").hidden = !map.isText;
  $("site").value = maps.indexOf(map);
  $("head").value = head ?? "mean";
  $("full-tone").textContent = tone.toFixed(2);
  const scale = Float32Array.from({ length: 256 }, (_, at) => at / 255);
  const legend = drawn.theme.palette.image({ cells: scale, rows: 1, columns: 256 }, 1);
  $("legend").getContext("2d").putImageData(legend, 0, 0);
  $("stage").ariaLabel = $("words").ariaLabel = `${say("figure")}: ${mapTitle(map, head)}`;
  $("hint").textContent = `${say("keysMove")} ${map.heads > 1 ? say("keysHead") : ""}`;
  if (map.isText) showWords();
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
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  paintCells(context, map, drawn.weights, drawn.tone, place, drawn.theme.palette);

  stage.querySelector("svg")?.remove();
  const overlay = mark(stage, "svg", { width, height, "aria-hidden": "true" });
  const names = { rows: translated(map.rows.name), columns: translated(map.columns.name) };
  writeLabels(overlay, map, place, names, drawn.theme);
  Object.assign(drawn, { place, names, cursor: mark(overlay, "g", {}) });
  $("columns-name").textContent = names.columns;
  $("rows-name").textContent = names.rows;
  drawn.columnWords = fillLine($("columns-line"), map.columns.labels, (column) => point(strongestRow(column), column));
  drawn.rowWords = fillLine($("rows-line"), map.rows.labels, (row) => point(row, strongestColumn(row)));
}

/** A line of words that answer to the pointer; very long texts are cut, and say so. */
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
  drawn.rowWords = [];
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

/** Moves the cursor: readout, shaded words, ring around the cell. */
function point(row, column) {
  const { map } = view;
  view.row = Math.min(map.height - 1, Math.max(0, row));
  view.column = Math.min(map.width - 1, Math.max(0, column));
  const values = { row: map.rows.labels[view.row], column: map.columns.labels[view.column] };
  const weight = drawn.weights[view.row * map.width + view.column];
  const sentence = data.strings[view.language].readout.split(/\{(\w+)\}/);
  const parts = sentence.map((part) => (part in values ? element("bdi", { textContent: values[part] }) : part));
  $("readout").replaceChildren(...parts, " ", element("strong", { textContent: weight.toFixed(2) }));
  shadeWords();
  if (!map.isText) markCursor(drawn.cursor, drawn.place, view, drawn.theme);
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
    if (!word) continue;
    const line = word.parentElement, outer = line.getBoundingClientRect(), inner = word.getBoundingClientRect();
    if (inner.top < outer.top) line.scrollTop += inner.top - outer.top - 4;
    else if (inner.bottom > outer.bottom) line.scrollTop += inner.bottom - outer.bottom + 4;
  }
}

function strongestColumn(row) {
  const { weights } = drawn, { width } = view.map;
  return strongest(width, (column) => weights[row * width + column]);
}

function strongestRow(column) {
  const { weights } = drawn, { width, height } = view.map;
  return strongest(height, (row) => weights[row * width + column]);
}

function strongest(count, weightAt) {
  let best = 0;
  for (let at = 1; at < count; at++) if (weightAt(at) > weightAt(best)) best = at;
  return best;
}

/** A map opens on its strongest link; changing the head keeps the place. */
function choose(map, head) {
  const isNew = map !== view.map;
  view.map = map;
  view.head = head !== null && head < map.heads && map.heads > 1 ? head : null;
  fillHeads();
  if (isNew) pointAtStrongest();
  show();
}

function pointAtStrongest() {
  const weights = view.map.head(view.head);
  const best = strongest(weights.length, (at) => weights[at]);
  view.row = Math.floor(best / view.map.width);
  view.column = best % view.map.width;
}

function stepHead(by) {
  const heads = headsOf(view.map), at = heads.indexOf(view.head);
  choose(view.map, heads[(at + by + heads.length) % heads.length]);
}

function headsOf(map) {
  return map.heads > 1 ? [null, ...Array(map.heads).keys()] : [null];
}

function fillHeads() {
  const options = headsOf(view.map).map((head) => {
    return element("option", { value: head ?? "mean", textContent: headName(head) });
  });
  $("head").replaceChildren(...options);
  $("head-label").hidden = options.length === 1;
}
