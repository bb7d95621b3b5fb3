// Numbers: from the packed text to weights, from weights to pixels.

/**
 * What explain/page.py says of an answer. Axes are listed once, and maps name them by their places.
 * In a plane lie all units of an axis but the fixed ones, in reading order; `picture` is a PNG of it in base64.
 * @typedef {{ name: string, labels: string[], grid?: [number, number], fixed?: number[], picture?: string }} Axis
 * @typedef {"weight" | "share" | "probability"} Holds what the numbers of a map are
 * @typedef {{ site: string, title: string, holds: Holds, heads: number, rows: number, columns: number, packed: string }} PackedMap
 * @typedef {{ sentences: Record<string, string>, score: number | null }} Trust
 * @typedef {object} Attention
 * @property {string} task
 * @property {string} model
 * @property {string} input
 * @property {string} output
 * @property {number} main which of the maps says most
 * @property {Trust | null} trust
 * @property {Axis[]} axes
 * @property {PackedMap[]} maps
 * @property {number} fullScale weight 1
 */

/** @typedef {number | null} Head counted from 0; null is the mean of all */
/** @typedef {{ cells: Float32Array, rows: number, columns: number }} Grid */

/**
 * base64 → deflate → all low bytes, then all high bytes → weights between 0 and 1.
 * @param {string} packed @param {number} fullScale
 */
async function unpack(packed, fullScale) {
  const bytes = Uint8Array.from(atob(packed), (char) => char.charCodeAt(0));
  const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const planes = new Uint8Array(await new Response(plain).arrayBuffer());
  const count = planes.length / 2;
  const weights = new Float32Array(count);
  for (let at = 0; at < count; at++) weights[at] = (planes[at] + 256 * planes[count + at]) / fullScale;
  return weights;
}

/** One attention site: labelled axes, and the weights of any head, or of their mean, once they are `ready`. */
export class AttentionMap {
  /** @param {PackedMap} map @param {Pick<Attention, "axes" | "fullScale">} attention */
  constructor({ site, title, holds, heads, rows, columns, packed }, { axes, fullScale }) {
    this.site = site;
    this.title = title;
    this.holds = holds;
    this.heads = heads;
    this.rows = axes[rows];
    this.columns = axes[columns];
    this.height = this.rows.labels.length;
    this.width = this.columns.labels.length;
    this.isPlane = this.columns.grid !== undefined;
    this.isText = this.height === 1 && !this.isPlane;
    this.ready = unpack(packed, fullScale).then((weights) => { this.weights = weights; });
  }

  /** @param {Head} head */
  head(head) {
    const size = this.height * this.width;
    if (head !== null) return this.weights.subarray(head * size, (head + 1) * size);
    if (!this.mean) {
      this.mean = new Float32Array(size);
      for (let at = 0; at < this.weights.length; at++) this.mean[at % size] += this.weights[at] / this.heads;
    }
    return this.mean;
  }
}

/**
 * The weight that gets the last colour: the largest, but at least four times what an even spread gives.
 * A row that looks everywhere alike must look pale, not decided; the scale beside the picture says its end.
 * @param {Float32Array} weights @param {number} width
 */
export function fullTone(weights, width) {
  let tone = 4 / width;
  for (const weight of weights) if (weight > tone) tone = weight;
  return Math.min(1, tone);
}

/**
 * At most `most` cells a side; the largest weight of a block stands for it, since a mean hides single links.
 * @param {Float32Array} weights @param {number} height @param {number} width @param {number} most
 * @returns {Grid}
 */
export function pooled(weights, height, width, most) {
  const rows = Math.min(height, most), columns = Math.min(width, most);
  if (rows === height && columns === width) return { cells: weights, rows, columns };
  const cells = new Float32Array(rows * columns);
  for (let row = 0; row < height; row++) {
    const start = Math.floor((row * rows) / height) * columns;
    for (let column = 0; column < width; column++) {
      const at = start + Math.floor((column * columns) / width);
      const weight = weights[row * width + column];
      if (weight > cells[at]) cells[at] = weight;
    }
  }
  return { cells, rows, columns };
}

/** The colour scale; a dark page reads it backwards, so that zero has the colour of the paper. */
export class Palette {
  /** @param {string} hex 256 colours @param {boolean} isDark */
  constructor(hex, isDark) {
    this.colours = Array.from(hex.matchAll(/(..)(..)(..)/g), ([, ...bytes]) => bytes.map((byte) => parseInt(byte, 16)));
    if (isDark) this.colours.reverse();
  }

  /** @param {number} fraction */
  index(fraction) {
    return Math.round(255 * Math.min(1, Math.max(0, fraction)));
  }

  /** @param {number} fraction */
  rgb(fraction) {
    return this.colours[this.index(fraction)];
  }

  /** @param {number} fraction */
  css(fraction) {
    return `rgb(${this.rgb(fraction).join(" ")})`;
  }

  /** Black or white, whichever reads better: WCAG contrast is then at least 4.5. @param {number} fraction */
  ink(fraction) {
    const light = this.rgb(fraction).map((byte) => {
      const value = byte / 255;
      return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * light[0] + 0.7152 * light[1] + 0.0722 * light[2] > 0.179 ? "#000" : "#fff";
  }

  /** One pixel a cell. @param {Grid} grid @param {number} tone */
  image({ cells, rows, columns }, tone) {
    const image = new ImageData(columns, rows);
    for (let at = 0; at < cells.length; at++) image.data.set([...this.rgb(cells[at] / tone), 255], 4 * at);
    return image;
  }

  /**
   * The same as a palette bitmap for small <img>s: sixty live canvases are too many for some browsers.
   * @param {Grid} grid @param {number} tone
   */
  bitmap({ cells, rows, columns }, tone) {
    const stride = Math.ceil(columns / 4) * 4, start = 54 + 4 * 256;
    const bytes = new Uint8Array(start + stride * rows), header = new DataView(bytes.buffer);
    const fields = [[2, bytes.length], [10, start], [14, 40], [18, columns], [22, -rows], [26, 0x80001], [46, 256]];
    bytes.set([0x42, 0x4d]);
    for (const [at, value] of fields) header.setInt32(at, value, true);
    this.colours.forEach(([red, green, blue], at) => bytes.set([blue, green, red], 54 + 4 * at));
    cells.forEach((weight, at) => {
      bytes[start + Math.floor(at / columns) * stride + (at % columns)] = this.index(weight / tone);
    });
    return `data:image/bmp;base64,${btoa(String.fromCharCode(...bytes))}`;
  }
}
