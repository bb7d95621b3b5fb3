// The tree of a beam search: a column for each step, a box for each hypothesis, a line to its parent.

/** @typedef {typeof import("./beams.json").en} Strings */
/**
 * A BeamNode of explain/beams.py; a number that is not finite is null.
 * @typedef {object} BeamNode
 * @property {number} parent
 * @property {string} token
 * @property {string} text
 * @property {number | null} probability
 * @property {number | null} log_prob
 * @property {number | null} score
 * @property {number} step
 * @property {keyof Strings["fates"]} fate
 * @property {number | null} rank
 */
/**
 * A node of the tree; it has a box and an edge from when it is first drawn.
 * @typedef {BeamNode & { number: number, children: Branch[], row: number, label: string,
 *   box?: SVGGElement, edge?: SVGPathElement }} Branch
 */

const SVG = "http://www.w3.org/2000/svg";
const BOX = { height: 24, gap: 8, across: 34, least: 46, most: 150 };
/** @template {string} Id @param {Id} id */
const $ = (id) => /** @type {{ [id: string]: HTMLElement, outranked: HTMLInputElement }[Id]} */ (document.getElementById(id));
/** @type {{ model: string, input: string, settings: string, nodes: BeamNode[], strings: Record<string, Strings> }} */
const data = JSON.parse($("data").textContent ?? "");
/** @type {Branch[]} */
const nodes = data.nodes.map((node, number) => ({ ...node, number, children: [], row: 0, label: "" }));
for (const node of nodes.slice(1)) nodes[node.parent].children.push(node);
const view = { language: navigator.language.startsWith("zh") ? "zh" : "en", outranked: false, current: bestAnswer() };
const brush = /** @type {CanvasRenderingContext2D} */ (document.createElement("canvas").getContext("2d"));

function bestAnswer() {
  return nodes.find((node) => node.rank === 1) ?? nodes[0];
}

/** @template {keyof Strings} Key @param {Key} key */
function say(key) {
  return data.strings[view.language][key];
}

/** @param {string} template @param {Record<string, string | number | null>} values */
function filled(template, values) {
  return template.replace(/{(\w+)}/g, (_, name) => String(values[name]));
}

/** @param {number | null} value @param {number} digits */
function written(value, digits) {
  return value === null ? "−∞" : value.toFixed(digits).replace("-", "−");
}

/**
 * @template {keyof SVGElementTagNameMap} Name
 * @param {Element} parent @param {Name} name @param {Record<string, string | number>} attributes @param {string} [content]
 */
function mark(parent, name, attributes, content) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
  if (content !== undefined) made.textContent = content;
  parent.append(made);
  return made;
}

/** @param {Branch} node */
function pathTo(node) {
  const path = [node];
  while (path[0].number) path.unshift(nodes[path[0].parent]);
  return path;
}

/** @param {Branch} node */
function shown(node) {
  return view.outranked || node.fate !== "outranked";
}

/** @param {string} text @param {number} limit */
function shortened(text, limit) {
  if (brush.measureText(text).width <= limit) return text;
  const parts = Array.from(text.slice(0, 100));
  while (parts.length && brush.measureText(parts.join("") + "…").width > limit) parts.pop();
  return parts.join("") + "…";
}

/** Best first. @param {Branch} node */
function continued(node) {
  return node.children.filter(shown).sort((one, other) => (other.log_prob ?? -Infinity) - (one.log_prob ?? -Infinity));
}

/** A node, its best continuation, and so on lie in one row. Others branch off into the next free rows. */
function layout() {
  brush.font = getComputedStyle($("tree")).font;
  /** @type {number[]} */
  const widths = [];
  /** @type {Set<number>[]} the steps taken in each row */
  const taken = [];
  /** @param {Branch} first @param {number} from */
  const lay = (first, from) => {
    const way = [first];
    for (let next = continued(first)[0]; next; next = continued(next)[0]) way.push(next);
    let row = from;
    while (way.some((node) => taken[row]?.has(node.step))) row++;
    taken[row] ??= new Set();
    for (const node of way) {
      taken[row].add(node.step);
      node.row = row;
      node.label = node.number ? shortened(node.token, BOX.most) : "▸";
      widths[node.step] = Math.max(widths[node.step] ?? BOX.least, brush.measureText(node.label).width + 20);
    }
    for (const node of way.reverse()) for (const other of continued(node).slice(1)) lay(other, row + 1);
  };
  lay(nodes[0], 0);
  const lefts = [8];
  widths.forEach((width, step) => lefts.push(lefts[step] + width + BOX.across));
  return { widths, lefts, rows: taken.length };
}

function draw() {
  const { widths, lefts, rows } = layout();
  const tree = $("tree"), visible = nodes.filter((node) => node.number === 0 || pathTo(node).every((one) => one.number === 0 || shown(one)));
  /** @param {Branch} node */
  const middle = (node) => 16 + node.row * (BOX.height + BOX.gap) + BOX.height / 2;
  tree.setAttribute("width", String(lefts.at(-1)));
  tree.setAttribute("height", String(24 + rows * (BOX.height + BOX.gap)));
  tree.setAttribute("role", "img");
  tree.setAttribute("aria-label", say("tree"));
  tree.replaceChildren();
  const way = new Set(pathTo(bestAnswer())), edges = mark(tree, "g", {});
  for (const node of visible.slice(1)) {
    const parent = nodes[node.parent], from = lefts[parent.step] + widths[parent.step], to = lefts[node.step];
    const bend = (from + to) / 2;
    node.edge = mark(edges, "path", { d: `M${from} ${middle(parent)}C${bend} ${middle(parent)} ${bend} ${middle(node)} ${to} ${middle(node)}` });
    if (way.has(node)) node.edge.classList.add("way");
  }
  for (const node of visible) {
    const box = mark(tree, "g", { "data-fate": node.number ? node.fate : "went on", "data-node": node.number });
    box.classList.add(...(node.number ? node.fate : "root").split(" "));
    const x = lefts[node.step], y = middle(node), width = widths[node.step];
    mark(box, "rect", { x, y: y - BOX.height / 2, width, height: BOX.height, rx: 6 });
    mark(box, "text", { x: x + 9, y }, node.label);
    box.addEventListener("pointerenter", () => point(node));
    node.box = box;
  }
  point(view.current.box && visible.includes(view.current) ? view.current : bestAnswer());
}

/** @param {Branch} node */
function point(node) {
  for (const one of nodes) {
    one.box?.classList.toggle("current", one === node);
    one.edge?.classList.remove("lit");
  }
  for (const one of pathTo(node)) one.edge?.classList.add("lit");
  view.current = node;
  const { number, text, fate, rank, probability, log_prob, score } = node;
  const percent = probability === null ? "–" : `${written(100 * probability, 1)} %`;
  $("written").textContent = number ? text : say("nothing");
  $("fate").textContent = number ? filled(say("fates")[fate][1], { rank }) : "";
  $("details").textContent = number
    ? filled(say("details"), { probability: percent, log_prob: written(log_prob, 2), score: written(score, 3) })
    : data.settings;
}

/** @param {KeyboardEvent} event */
function step(event) {
  const { current } = view, drawn = nodes.filter((node) => node.box?.isConnected);
  const column = drawn.filter((node) => node.step === current.step).sort((one, other) => one.row - other.row);
  /** @param {number} by */
  const beside = (by) => column[column.indexOf(current) + by];
  /** @type {Record<string, () => Branch | undefined>} */
  const moves = {
    ArrowLeft: () => nodes[current.parent],
    ArrowRight: () => continued(current)[0],
    ArrowUp: () => beside(-1),
    ArrowDown: () => beside(1),
  };
  if (!moves[event.key]) return;
  event.preventDefault();
  const next = moves[event.key]();
  if (!next) return;
  point(next);
  next.box?.scrollIntoView({ block: "nearest", inline: "nearest" });
}

function showTexts() {
  document.documentElement.lang = view.language === "zh" ? "zh-Hans" : "en";
  for (const node of document.querySelectorAll("[data-text]")) {
    node.textContent = say(/** @type {Exclude<keyof Strings, "fates">} */ (node.getAttribute("data-text")));
  }
  $("about").textContent = `${data.model} · ${data.settings}`;
  $("input").textContent = data.input;
  const answers = nodes.filter((node) => node.rank !== null).sort((one, other) => Number(one.rank) - Number(other.rank));
  const once = answers.filter((node, at) => at === 0 || node.rank !== answers[at - 1].rank);
  $("answers").replaceChildren(...once.map((node) => {
    const line = document.createElement("li"), score = document.createElement("small");
    line.append(Object.assign(document.createElement("bdi"), { textContent: node.text }), score);
    score.textContent = node.score === null ? "" : written(node.score, 3);
    return line;
  }));
  $("fates").replaceChildren(...Object.entries(say("fates")).map(([fate, [name, meaning]]) => {
    const entry = document.createElement("li"), sign = document.createElement("i");
    sign.classList.add(...fate.split(" "));
    sign.dataset.fate = fate;
    entry.title = meaning.replace(/{rank}/, "1");
    entry.append(sign, name);
    return entry;
  }));
  $("languages").setAttribute("aria-label", say("language"));
  $("languages").replaceChildren(...Object.entries(data.strings).map(([code, { name }]) => {
    const button = Object.assign(document.createElement("button"), { type: "button", textContent: name, lang: code });
    button.setAttribute("aria-pressed", String(code === view.language));
    button.addEventListener("click", () => { view.language = code; showTexts(); draw(); });
    return button;
  }));
}

$("branches").addEventListener("keydown", step);
$("outranked").addEventListener("change", () => { view.outranked = $("outranked").checked; draw(); });
showTexts();
draw();
document.documentElement.dataset.ready = "";
