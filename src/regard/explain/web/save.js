// Saving: the current picture as one SVG, with everything a picture must not be shown without.

import { FONT, SVG, mark, measure, pen, shortened, write } from "./figure.js";

/** @import { Theme } from "./figure.js" */

const MARGIN = 24;

/**
 * Lines no wider than `room`, broken where the language allows.
 * @param {string} text @param {number} room @param {number} size
 */
function wrapped(text, room, size) {
  const words = new Intl.Segmenter(undefined, { granularity: "word" });
  const lines = [];
  let line = "";
  for (const { segment } of words.segment(text)) {
    if (line && measure(line + segment.trimEnd(), size) > room) {
      lines.push(line);
      line = "";
    }
    line += line ? segment : segment.trimStart();
  }
  return [...lines, line];
}

/**
 * `body(group)` draws the picture itself into a group and says how large it became.
 * @param {{ title: string, about: string, tone: number, captions: string[], theme: Theme,
 *   body: (group: SVGGElement) => { width: number, height: number } }} picture
 */
export function composeFile({ title, about, tone, captions, theme, body }) {
  const root = document.createElementNS(SVG, "svg");
  root.setAttribute("font-family", FONT);
  mark(root, "title", {}, title);
  const paper = mark(root, "rect", { width: "100%", height: "100%", fill: theme.paper });
  const picture = mark(root, "g", { transform: `translate(${MARGIN} 84)` });
  const size = body(picture);
  const room = Math.max(size.width, 432), width = room + 2 * MARGIN;
  write(root, shortened(title, room, 17), MARGIN, 36, { "font-size": 17, "font-weight": 600, fill: theme.ink });
  write(root, shortened(about, room - 190, 12), MARGIN, 58, { "font-size": 12, fill: theme.muted });
  const scale = { x: width - MARGIN - 160, y: 49 };
  const small = { "font-size": 11, fill: theme.muted };
  write(root, "0", scale.x - 6, scale.y + 9, { ...small, "text-anchor": "end" });
  for (let step = 0; step < 64; step++) {
    mark(root, "rect", { x: scale.x + 2 * step, y: scale.y, width: 2, height: 10, fill: theme.palette.css(step / 63) });
  }
  write(root, tone.toFixed(2), scale.x + 134, scale.y + 9, small);
  let y = 84 + size.height + 30;
  for (const line of captions.flatMap((caption) => wrapped(caption, room, 12))) {
    write(root, line, MARGIN, y, { "font-size": 12, fill: theme.muted });
    y += 17.4;
  }
  const extent = { width: String(width), height: String(y), viewBox: `0 0 ${width} ${y}` };
  for (const [key, value] of Object.entries(extent)) root.setAttribute(key, value);
  paper.setAttribute("height", extent.height);
  return root;
}

/** @param {Blob} blob @param {string} name */
function download(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name.replace(/[^\w.-]+/g, "-");
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

/** @param {SVGElement} root @param {string} name */
export function saveSvg(root, name) {
  download(new Blob([new XMLSerializer().serializeToString(root)], { type: "image/svg+xml" }), `${name}.svg`);
}

/** @param {SVGElement} root @param {string} name @param {number} [scale] */
export async function savePng(root, name, scale = 2) {
  const image = new Image();
  image.src = "data:image/svg+xml," + encodeURIComponent(new XMLSerializer().serializeToString(root));
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = Number(root.getAttribute("width")) * scale;
  canvas.height = Number(root.getAttribute("height")) * scale;
  pen(canvas).drawImage(image, 0, 0, canvas.width, canvas.height);
  canvas.toBlob((blob) => { if (blob) download(blob, `${name}.png`); });
}
