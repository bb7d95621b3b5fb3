// A history of items: found by their titles, shown as cards, taken out again.

import * as ask from "/web/ask.js";
import { $, element } from "/web/dom.js";
import { say } from "/web/language.js";

const PAUSE = 150; // milliseconds without a key before titles are looked for

/** @type {ask.Choice[]} */
let history = [];
let model = "";
let changed = () => {};
let timer = 0;

/** @param {() => void} whenChanged */
export function start(whenChanged) {
  changed = whenChanged;
  $("find").addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(look, PAUSE);
  });
  $("find").addEventListener("focus", look);
  $("find").addEventListener("keydown", async (event) => {
    if (event.key === "Escape") close();
    if (event.key === "ArrowDown") $("found").querySelector("button")?.focus();
    if (event.key !== "Enter") return;
    event.preventDefault();
    clearTimeout(timer);
    if ($("find").value.trim() && (await look())) $("found").querySelector("button")?.click();
  });
  $("found").addEventListener("keydown", (event) => {
    if (event.key === "Escape") $("find").focus();
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
    event.preventDefault();
    const line = document.activeElement?.parentElement;
    const next = event.key === "ArrowDown" ? line?.nextElementSibling : line?.previousElementSibling;
    (next?.querySelector("button") ?? $("find")).focus();
  });
  $("basket").addEventListener("focusout", ({ relatedTarget }) => {
    if (!(relatedTarget instanceof Node && $("basket").contains(relatedTarget))) close();
  });
}

/** What belongs to another model is nothing to this one. @param {string} name */
export function belongTo(name) {
  if (name === model) return;
  model = name;
  history = [];
  draw();
}

export const items = () => history.map(({ item }) => item);

export function relabel() {
  $("find").placeholder = say("findItem");
  draw();
}

/** @param {ask.Choice} choice */
export function add(choice) {
  history.push(choice);
  draw();
  changed();
}

/** @param {ask.Choice} choice the title, and the category if it has one */
export const named = ({ item, title, category }) => [
  element("bdi", { className: "title", textContent: title || item }),
  ...(category ? [element("small", { textContent: category.replaceAll("|", " · ") })] : []),
];

/** Whether what is found is that of the last text. */
async function look() {
  const text = $("find").value;
  const choices = await ask.choices(model, text);
  if (document.activeElement !== $("find") || $("find").value !== text) return false;
  $("found").replaceChildren(...choices.map((choice) => {
    const button = element("button", { type: "button" }, ...named(choice));
    button.addEventListener("click", () => {
      $("find").value = "";
      $("find").focus();
      add(choice);
    });
    return element("li", {}, button);
  }));
  show(choices.length > 0);
  return true;
}

/** @param {boolean} isOpen */
function show(isOpen) {
  $("found").hidden = !isOpen;
  $("find").setAttribute("aria-expanded", String(isOpen));
}

const close = () => show(false);

function draw() {
  $("history").replaceChildren(...history.map((choice, at) => {
    const out = element("button", { type: "button", textContent: "×", title: say("takeOut") });
    out.setAttribute("aria-label", `${say("takeOut")}: ${choice.title || choice.item}`);
    out.addEventListener("click", () => {
      history.splice(at, 1);
      draw();
      changed();
    });
    return element("li", {}, element("span", { className: "what" }, ...named(choice)), out);
  }));
}
