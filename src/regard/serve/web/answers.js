// How the answer of each kind of task is asked for and shown: one function each.

import * as ask from "/web/ask.js";
import * as attention from "/web/attention.js";
import * as basket from "/web/basket.js";
import * as drop from "/web/drop.js";
import { $, element } from "/web/dom.js";
import { drawn } from "/web/forecast.js";
import { say } from "/web/language.js";
import * as settings from "/web/settings.js";

const MOST_LABELS = 12;

/** What is written, while it is. @param {string} route */
function written(route) {
  /** @param {ask.Model} model @param {AbortSignal} signal */
  return async (model, signal) => {
    const fields = { model: model.name, text: $("input").value, decode: settings.chosen() };
    for await (const begun of ask.followed(route, fields, signal)) $("output").textContent = begun;
    $("answer").classList.remove("waiting");
    if (!model.heads) return;
    const answer = await ask.explained(fields, signal);
    await attention.show(answer.attention, signal);
  };
}

/** A line with a bar. @param {{ text: string, probability: number | null }} one */
function likely({ text, probability }) {
  const bar = element("i");
  bar.style.width = `${100 * (probability ?? 0)}%`;
  const name = element("bdi", { textContent: text, title: text });
  return element("li", {}, name, element("span", {}, bar), probability?.toFixed(3) ?? "–");
}

/** How likely each label is. @param {Record<string, number | null>} probabilities */
function rank(probabilities) {
  const labels = Object.entries(probabilities).sort(([, one], [, other]) => (other ?? 0) - (one ?? 0)).slice(0, MOST_LABELS);
  $("labels").replaceChildren(...labels.map(([text, probability]) => likely({ text, probability })));
  $("labels").hidden = false;
}

/** A label, and how likely each of them is. @param {ask.Model} model @param {AbortSignal} signal @param {ask.Asked} asked */
async function labelled(model, signal, asked = { text: $("input").value }) {
  const answer = /** @type {ask.Label} */ (await ask.answered(model, asked, signal));
  $("output").textContent = answer.text || "–";
  rank(answer.probabilities);
  if (answer.attention) await attention.show(answer.attention, signal);
}

/** The answer to a file, whatever the task. @param {ask.Model} model @param {AbortSignal} signal */
export async function ofFile(model, signal) {
  const inputs = { [drop.fileOf(model)?.name ?? ""]: await drop.content() };
  const search = model.decode ? { decode: settings.chosen() } : {};
  const answer = await ask.ofFile({ model: model.name, inputs, attention: model.heads > 0, packed: true, ...search }, signal);
  $("output").textContent = answer.text || "–";
  if (answer.probabilities) rank(answer.probabilities);
  if (answer.attention) await attention.show(answer.attention, signal);
}

/** @param {ask.Model} model @param {AbortSignal} signal */
const classify_pair = (model, signal) =>
  labelled(model, signal, { text: $("input").value, second: $("second").value });

/** @param {ask.Model} model @param {AbortSignal} signal */
async function tag(model, signal) {
  const answer = /** @type {ask.Tagged} */ (await ask.answered(model, { text: $("input").value }, signal));
  $("output").replaceChildren(...answer.words.flatMap((word, n) => {
    const mark = element("rt", { textContent: answer.tags[n] === "O" ? "" : answer.tags[n] });
    return [element("ruby", {}, word, mark), " "];
  }));
  if (answer.attention) await attention.show(answer.attention, signal);
}

/** @param {ask.Model} model @param {AbortSignal} signal */
async function fill(model, signal) {
  const answer = /** @type {ask.Filled} */ (await ask.answered(model, { text: $("input").value }, signal));
  $("output").textContent = answer.text;
  $("labels").replaceChildren(...answer.blanks.flatMap(({ candidates }) => {
    const lines = candidates.map(likely);
    lines[0]?.classList.add("begins");
    return lines;
  }));
  $("labels").hidden = false;
  if (answer.attention) await attention.show(answer.attention, signal);
}

/** The answer, marked where it stands. @param {ask.Model} model @param {AbortSignal} signal */
async function answer(model, signal) {
  const [question, context] = [$("input").value, $("context").value];
  const found = /** @type {ask.Answered} */ (await ask.answered(model, { question, context }, signal));
  if (found.start === null || found.end === null) {
    $("output").textContent = say("noAnswer");
  } else {
    const characters = [...context]; // the server counts characters, a script halves of some
    const mark = element("mark", { textContent: found.text });
    $("output").replaceChildren(
      characters.slice(0, found.start).join(""), mark, characters.slice(found.end).join(""),
    );
  }
  if (found.attention) await attention.show(found.attention, signal);
}

const MOST_REASONS = 2;

/** What is wanted next, with what spoke for it. @param {ask.Model} model @param {AbortSignal} signal @param {string} [item] that is asked about */
async function recommend(model, signal, item) {
  const about = item === undefined ? {} : { item };
  const list = await ask.recommended({
    model: model.name, items: basket.items(), because: MOST_REASONS, attention: model.heads > 0, packed: true, ...about,
  }, signal);
  $("output").textContent = "";
  $("recommended").replaceChildren(...list.items.map((one) => card(one, model, signal, one.item === (item ?? list.items[0].item))));
  $("recommended").hidden = false;
  if (list.attention) await attention.show(list.attention, signal);
}

/** @param {ask.Recommended} one @param {ask.Model} model @param {AbortSignal} signal @param {boolean} isShown whether the picture below is about it */
function card(one, model, signal, isShown) {
  const bar = element("i");
  bar.style.width = `${100 * Math.exp(one.score)}%`;
  const names = one.because.map(({ item, title }) => title || item).join(say("and"));
  const why = names ? [element("small", { className: "why", textContent: say("because", { names }) })] : [];
  const what = element("button", { type: "button", className: "what", title: say("askWhy") }, ...basket.named(one), ...why);
  what.addEventListener("click", () => recommend(model, signal, one.item).catch(() => {}));
  const taken = element("button", { type: "button", textContent: "+", title: say("putIn") });
  taken.setAttribute("aria-label", `${say("putIn")}: ${one.title || one.item}`);
  taken.addEventListener("click", () => basket.add(one));
  const share = element("span", { className: "share", title: say("share") }, element("span", {}, bar), element("em", { textContent: `${(100 * Math.exp(one.score)).toFixed(1)} %` }));
  const line = element("li", {}, element("b", { textContent: String(one.rank) }), what, share, taken);
  line.classList.toggle("current", isShown);
  return line;
}

/** What comes next, drawn. @param {ask.Model} model @param {AbortSignal} signal */
async function forecast(model, signal) {
  const found = await ask.foretold(model, $("input").value, signal);
  $("output").textContent = found.text;
  $("forecast").replaceChildren(...drawn(found));
  $("forecast").hidden = false;
}

export const ANSWERS = {
  translate: written("translate"),
  summarize: written("summarize"),
  dialogue: written("reply"),
  language_model: written("generate"),
  classify: labelled,
  classify_pair,
  multilabel: labelled,
  relation: labelled,
  forecast,
  tag,
  pretrain: fill,
  answer,
  transcribe: async () => {}, // it listens (listening.js)
  /** @param {ask.Model} model @param {AbortSignal} signal */
  recommend: (model, signal) => recommend(model, signal),
};
