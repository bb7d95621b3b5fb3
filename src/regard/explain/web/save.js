// Saving: the current picture as one SVG, with everything a picture must not be shown without.

const MARGIN = 24;

/** Lines no wider than `room`, broken where the language allows. */
function wrapped(text, room, size) {
  const words = new Intl.Segmenter(undefined, { granularity: "word" });
  const lines = [""];
  for (const { segment } of words.segment(text)) {
    if (lines.at(-1) && measure(lines.at(-1) + segment.trimEnd(), size) > room) lines.push("");
    lines[lines.length - 1] += lines.at(-1) ? segment : segment.trimStart();
  }
  return lines;
}

/** `body(group)` draws the picture itself into a group and says how large it became. */
function composeFile({ title, about, tone, captions, theme, body }) {
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
  const extent = { width, height: y, viewBox: `0 0 ${width} ${y}` };
  for (const [key, value] of Object.entries(extent)) root.setAttribute(key, value);
  paper.setAttribute("height", y);
  return root;
}

function download(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name.replace(/[^\w.-]+/g, "-");
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

function saveSvg(root, name) {
  download(new Blob([new XMLSerializer().serializeToString(root)], { type: "image/svg+xml" }), `${name}.svg`);
}

async function savePng(root, name, scale = 2) {
  const image = new Image();
  image.src = "data:image/svg+xml," + encodeURIComponent(new XMLSerializer().serializeToString(root));
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = root.getAttribute("width") * scale;
  canvas.height = root.getAttribute("height") * scale;
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  canvas.toBlob((blob) => download(blob, `${name}.png`));
}
