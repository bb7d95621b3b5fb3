// The page: a text goes in, its answer arrives, and then what the model looked at.

import * as ask from "/web/ask.js";
import { ANSWERS, ofFile } from "/web/answers.js";
import * as attention from "/web/attention.js";
import * as basket from "/web/basket.js";
import { $, fill } from "/web/dom.js";
import * as drop from "/web/drop.js";
import { say, speak, translated } from "/web/language.js";
import * as listening from "/web/listening.js";
import * as settings from "/web/settings.js";

const PAUSE = 600; // milliseconds without a key before the text is sent by itself

/** @type {ask.Model[]} */
let models = [];
let asking = new AbortController();
let timer = 0;

const model = () => /** @type {ask.Model} */ (models.find(({ name }) => name === $("model").value));

/** Whether the model answers questions about a text. */
const isAbout = () => model().task === "answer";

/** Whether the model reads two texts. */
const isPaired = () => model().task === "classify_pair";

/** Whether the model reads a history of items. */
const isHistory = () => model().task === "recommend";

/** Whether the model reads a file. */
const isFile = () => drop.fileOf(model()) !== undefined;

/** Whether the model hears sound while it comes in. */
const isListening = () => model().listens;

/** Whether the model reads a table of measurements. */
const isSeries = () => model().task === "forecast";

/** Whether all is there that the model is asked with. */
function isComplete() {
  if (isListening()) return false;
  if (isFile()) return drop.isThere();
  if (isHistory()) return basket.items().length > 0;
  const needed = [$("input"), ...(isAbout() ? [$("context")] : []), ...(isPaired() ? [$("second")] : [])];
  return needed.every(({ value }) => value.trim());
}

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
  $("recommended").hidden = true;
  $("forecast").hidden = true;
  if (!isComplete()) return;
  $("answer").classList.add("waiting");
  try {
    await (isFile() ? ofFile : ANSWERS[model().task])(model(), signal);
  } catch (fault) {
    if (!signal.aborted) complain(fault instanceof ask.Refusal ? fault.message : say("lost"));
  } finally {
    if (!signal.aborted) $("answer").classList.remove("waiting");
  }
}

/** @param {string} sentence */
function complain(sentence) {
  $("fault").hidden = !sentence;
  $("fault").textContent = sentence;
}

/** What depends on the model. */
function show() {
  const { name, task, description, listens } = model();
  const decode = listens ? null : model().decode;
  $("about").textContent = `${translated(task)} · ${description}`;
  for (const node of document.querySelectorAll(".searching")) /** @type {HTMLElement} */ (node).hidden = !decode;
  if (!decode) {
    $("settings").hidden = true;
    $("more").setAttribute("aria-expanded", "false");
  }
  $("answer").classList.toggle("label", ["classify", "classify_pair", "multilabel", "relation"].includes(task));
  for (const id of ["asking", "sending"]) $(id).hidden = listens;
  $("hearing").hidden = !listens;
  listening.belongTo(name);
  drop.belongTo(model());
  $("texts").hidden = isHistory() || isFile();
  $("basket").hidden = !isHistory();
  const hint = isFile() ? "fileHint" : isHistory() ? "historyHint" : isSeries() ? "tableHint" : "sendHint";
  $("send-hint").textContent = say(hint);
  $("answer").classList.toggle("gone", isHistory());
  if (isHistory()) basket.belongTo(model().name);
  $("beside").hidden = !isPaired();
  $("input").placeholder = say(task === "relation" ? "marked" : isSeries() ? "table" : "placeholder");
  $("input").classList.toggle("table", isSeries());
  $("about-what").hidden = !isAbout();
  settings.suggest(decode);
}

function relabel() {
  settings.relabel();
  basket.relabel();
  listening.relabel();
  $("context").placeholder = say("contextPlaceholder");
  show();
  attention.relabel();
}

function later() {
  clearTimeout(timer);
  timer = setTimeout(send, PAUSE);
}

function listen() {
  basket.start(send);
  drop.start(send);
  listening.start(complain);
  $("ask").addEventListener("submit", (event) => {
    event.preventDefault();
    send();
  });
  $("input").addEventListener("input", later);
  $("context").addEventListener("input", later);
  $("second").addEventListener("input", later);
  $("input").addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || isSeries()) return;
    event.preventDefault();
    send();
  });
  $("input").addEventListener("drop", async (event) => {
    const [file] = event.dataTransfer?.files ?? [];
    if (!file || !isSeries()) return;
    event.preventDefault();
    $("input").value = await file.text();
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
