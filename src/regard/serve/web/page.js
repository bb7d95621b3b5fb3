// The page: a text goes in, its answer arrives, and then what the model looked at.

import * as ask from "/web/ask.js";
import * as attention from "/web/attention.js";
import { $, element, fill } from "/web/dom.js";
import { say, speak, translated } from "/web/language.js";
import * as settings from "/web/settings.js";

const PAUSE = 600; // milliseconds without a key before the text is sent by itself
const MOST_LABELS = 12;

/** @type {ask.Model[]} */
let models = [];
let asking = new AbortController();
let timer = 0;

const model = () => /** @type {ask.Model} */ (models.find(({ name }) => name === $("model").value));

/** One question at a time: a new one ends the one before, and the server drops its work. */
async function send() {
  clearTimeout(timer);
  asking.abort();
  asking = new AbortController();
  const { signal } = asking;
  attention.hide();
  complain("");
  $("labels").hidden = true;
  $("output").textContent = "";
  if (!$("input").value.trim()) return;
  $("answer").classList.add("waiting");
  try {
    await (model().task === "translate" ? translate(signal) : classify(signal));
  } catch (fault) {
    if (!signal.aborted) complain(fault instanceof ask.Refusal ? fault.message : say("lost"));
  } finally {
    if (!signal.aborted) $("answer").classList.remove("waiting");
  }
}

/** @param {AbortSignal} signal */
async function translate(signal) {
  const fields = { model: model().name, text: $("input").value, decode: settings.chosen() };
  for await (const begun of ask.translated(fields, signal)) $("output").textContent = begun;
  $("answer").classList.remove("waiting");
  if (!model().heads) return;
  const answer = await ask.explained(fields, signal);
  await attention.show(answer.attention, signal);
}

/** @param {AbortSignal} signal */
async function classify(signal) {
  const fields = { model: model().name, text: $("input").value };
  const answered = model().heads ? ask.explained : ask.classified;
  const answer = /** @type {ask.Label} */ (await answered(fields, signal));
  $("output").textContent = answer.text;
  const likely = Object.entries(answer.probabilities).sort(([, one], [, other]) => (other ?? 0) - (one ?? 0)).slice(0, MOST_LABELS);
  $("labels").replaceChildren(...likely.map(([label, probability]) => {
    const bar = element("i");
    bar.style.width = `${100 * (probability ?? 0)}%`;
    return element("li", {}, element("bdi", { textContent: label }), element("span", {}, bar), probability?.toFixed(3) ?? "–");
  }));
  $("labels").hidden = false;
  if (answer.attention) await attention.show(answer.attention, signal);
}

/** @param {string} sentence */
function complain(sentence) {
  $("fault").hidden = !sentence;
  $("fault").textContent = sentence;
}

/** What depends on the model. */
function show() {
  const { task, description, decode } = model();
  $("about").textContent = `${translated(task)} · ${description}`;
  for (const node of document.querySelectorAll(".searching")) /** @type {HTMLElement} */ (node).hidden = task !== "translate";
  if (task !== "translate") {
    $("settings").hidden = true;
    $("more").setAttribute("aria-expanded", "false");
  }
  $("answer").classList.toggle("label", task !== "translate");
  settings.suggest(decode);
}

function relabel() {
  settings.relabel();
  $("input").placeholder = say("placeholder");
  show();
  attention.relabel();
}

function later() {
  clearTimeout(timer);
  timer = setTimeout(send, PAUSE);
}

function listen() {
  $("ask").addEventListener("submit", (event) => {
    event.preventDefault();
    send();
  });
  $("input").addEventListener("input", later);
  $("input").addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    send();
  });
  $("settings").addEventListener("input", later);
  $("search").addEventListener("change", send);
  $("model").addEventListener("change", () => {
    show();
    send();
  });
}

async function start() {
  const [looks, known] = await Promise.all([ask.looks(), ask.models()]);
  models = known;
  fill($("model"), models.map(({ name }) => [name, name]));
  settings.build();
  attention.start(looks.palette);
  speak(looks.strings, relabel);
  listen();
  document.documentElement.dataset.ready = "";
}

start();
