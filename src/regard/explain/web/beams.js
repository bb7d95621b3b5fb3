"use strict";

// The tree of a beam search: a column for each step, a box for each beginning, a line to what it continues.

const SVG = "http://www.w3.org/2000/svg";
const BOX = { height: 24, gap: 8, across: 34, least: 46, most: 150 };
const $ = (id) => document.getElementById(id);
const data = JSON.parse($("data").textContent);
const nodes = data.nodes.map((node, number) => ({ ...node, number, children: [] }));
for (const node of nodes.slice(1)) nodes[node.parent].children.push(node);
const view = { language: navigator.language.startsWith("zh") ? "zh" : "en", outranked: false, current: bestAnswer() };
const brush = document.createElement("canvas").getContext("2d");

function bestAnswer() {
  return nodes.find((node) => node.rank === 1) ?? nodes[0];
}

function say(name) {
  return data.strings[view.language][name];
}

function filled(template, values) {
  return template.replace(/{(\w+)}/g, (_, name) => values[name]);
}

function mark(parent, name, attributes, content) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (content !== undefined) made.textContent = content;
  parent.append(made);
  return made;
}

function pathTo(node) {
  const path = [node];
  while (path[0].number) path.unshift(nodes[path[0].parent]);
  return path;
}

function shown(node) {
  return view.outranked || node.fate !== "outranked";
}

function shortened(text, limit) {
  if (brush.measureText(text).width <= limit) return text;
  const parts = Array.from(text.slice(0, 100));
  while (parts.length && brush.measureText(parts.join("") + "…").width > limit) parts.pop();
  return parts.join("") + "…";
}

/** Best first. */
function continued(node) {
  return node.children.filter(shown).sort((one, other) => (other.log_prob ?? -Infinity) - (one.log_prob ?? -Infinity));
}

/** A way lies in one row: a beginning, its best continuation, and so on. Others branch off into the next free rows. */
function layout() {
  brush.font = getComputedStyle($("tree")).font;
  const widths = [], taken = [];
  const lay = (first, from) => {
    const way = [first];
    while (continued(way.at(-1)).length) way.push(continued(way.at(-1))[0]);
    let row = from;
    while (way.some((node) => taken[row]?.has(node.step))) row++;
    taken[row] ??= new Set();
    for (const node of way) {
      taken[row].add(node.step);
      node.row = row;
      node.label = node.number ? shortened(node.piece, BOX.most) : "▸";
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
  const middle = (node) => 16 + node.row * (BOX.height + BOX.gap) + BOX.height / 2;
  tree.setAttribute("width", lefts.at(-1));
  tree.setAttribute("height", 24 + rows * (BOX.height + BOX.gap));
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

function point(node) {
  for (const one of nodes) {
    one.box?.classList.toggle("current", one === node);
    one.edge?.classList.remove("lit");
  }
  for (const one of pathTo(node)) one.edge?.classList.add("lit");
  view.current = node;
  const number = (value, digits) => (value === null ? "−∞" : value.toFixed(digits).replace("-", "−"));
  $("written").textContent = node.number ? node.text : say("nothing");
  $("fate").textContent = node.number ? filled(say("fates")[node.fate][1], node) : "";
  $("details").textContent = node.number
    ? filled(say("details"), { probability: `${number(100 * node.probability, 1)} %`, log_prob: number(node.log_prob, 2), score: number(node.score, 3) })
    : data.settings;
}

function step(event) {
  const { current } = view, drawn = nodes.filter((node) => node.box?.isConnected);
  const column = drawn.filter((node) => node.step === current.step).sort((one, other) => one.row - other.row);
  const beside = (by) => column[column.indexOf(current) + by];
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
  next.box.scrollIntoView({ block: "nearest", inline: "nearest" });
}

function showTexts() {
  document.documentElement.lang = view.language === "zh" ? "zh-Hans" : "en";
  for (const node of document.querySelectorAll("[data-text]")) node.textContent = say(node.dataset.text);
  $("about").textContent = `${data.model} · ${data.settings}`;
  $("input").textContent = data.input;
  const answers = nodes.filter((node) => node.rank !== null).sort((one, other) => one.rank - other.rank);
  const once = answers.filter((node, at) => at === 0 || node.rank !== answers[at - 1].rank);
  $("answers").replaceChildren(...once.map((node) => {
    const line = document.createElement("li"), score = document.createElement("small");
    line.append(Object.assign(document.createElement("bdi"), { textContent: node.text }), score);
    score.textContent = node.score === null ? "" : node.score.toFixed(3).replace("-", "−");
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
    button.setAttribute("aria-pressed", code === view.language);
    button.addEventListener("click", () => { view.language = code; showTexts(); draw(); });
    return button;
  }));
}

$("branches").addEventListener("keydown", step);
$("outranked").addEventListener("change", () => { view.outranked = $("outranked").checked; draw(); });
showTexts();
draw();
document.documentElement.dataset.ready = "";
