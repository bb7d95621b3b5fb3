// Questions to the server, and answers as they arrive. What both look like is said by serve/schema.py.

/** @import { Strings } from "/web/language.js" */
/** @import { Forecast } from "/web/forecast.js" */
/** @import { Attention } from "/web/numbers.js" */
/** @typedef {Record<string, boolean | number | string | string[] | null>} Search settings of DecodeConfig */
/** @typedef {"translate" | "summarize" | "dialogue" | "classify" | "classify_pair" | "multilabel" | "tag" | "relation" | "answer" | "language_model" | "pretrain" | "transcribe" | "recommend" | "forecast"} Task */
/** @typedef {{ name: string, widget: string, accepts: string, file: boolean }} Input */
/** @typedef {{ name: string, task: Task, description: string, heads: number, listens: boolean, decode: Search | null, inputs: Input[] }} Model */
/** @typedef {{ palette: string, strings: Record<string, Strings> }} Looks */
/** @typedef {{ text: string, second?: string } | { question: string, context: string }} Asked */
/** @typedef {{ model: string, decode?: Search } & Asked} Question */
/** @typedef {{ text: string, attention?: Attention }} Translation */
/** @typedef {{ text: string, attention?: Attention, probabilities: Record<string, number | null> }} Label */
/** @typedef {{ text: string, attention?: Attention, words: string[], tags: string[] }} Tagged */
/** @typedef {{ text: string, attention?: Attention, blanks: { candidates: { text: string, probability: number | null }[] }[] }} Filled */
/** @typedef {{ text: string, attention?: Attention, start: number | null, end: number | null }} Answered */
/** @typedef {Label | Tagged | Filled | Answered} AtOnce */
/** @typedef {{ item: string, title: string, category: string }} Choice of a catalogue */
/** @typedef {{ item: string, title: string }} Reason */
/** @typedef {Choice & { rank: number, score: number, because: Reason[] }} Recommended */
/** @typedef {{ text: string, attention?: Attention, items: Recommended[], unknown: string[] }} List */
/** @typedef {{ text: string, attention?: Attention, probabilities?: Record<string, number | null> }} OfFile */
/** @typedef {{ model: string, inputs: Record<string, string>, attention: boolean, packed: true, decode?: Search }} FileAsk */
/** @typedef {{ model: string, items: string[], because: number, attention: boolean, packed: true, item?: string }} HistoryAsk */
/**
 * @typedef {{ name: "text", data: { text: string } } | { name: "answer", data: { answer: Translation } }
 *   | { name: "error", data: { error: { message: string } } }} Told
 */

/** What the server says instead of an answer. */
export class Refusal extends Error {}

/** @param {string} path @param {(Question & { packed?: true, stream?: true }) | HistoryAsk | FileAsk} question @param {AbortSignal} signal */
async function post(path, question, signal) {
  const headers = { "Content-Type": "application/json" };
  const response = await fetch(path, { method: "POST", headers, body: JSON.stringify(question), signal });
  if (!response.ok) throw new Refusal((await response.json()).error.message);
  return response;
}

/** @returns {Promise<Model[]>} */
export async function models() {
  const response = await fetch("/v1/models");
  return (await response.json()).models;
}

/** The answer to a file. @param {FileAsk} question @param {AbortSignal} signal @returns {Promise<OfFile>} */
export async function ofFile(question, signal) {
  return (await (await post("/v1/ask", question, signal)).json()).answers[0];
}

/** What is recommended after a history. @param {HistoryAsk} question @param {AbortSignal} signal @returns {Promise<List>} */
export async function recommended(question, signal) {
  return (await (await post("/v1/recommend", question, signal)).json()).answers[0];
}

/**
 * What comes next in a series. Tables are longer than texts may be, so they are sent as a file.
 * @param {Model} model @param {string} table @param {AbortSignal} signal
 * @returns {Promise<Forecast>}
 */
export async function foretold({ name }, table, signal) {
  const body = new FormData();
  body.set("model", name);
  body.set("series", new Blob([table], { type: "text/csv" }), "table.csv");
  const response = await fetch("/v1/ask", { method: "POST", body, signal });
  const answer = await response.json();
  if (!response.ok) throw new Refusal(answer.error.message);
  return answer.answers[0];
}

/** Items of a model's catalogue, by a part of their titles. @param {string} model @param {string} find @returns {Promise<Choice[]>} */
export async function choices(model, find) {
  const response = await fetch(`/v1/items?${new URLSearchParams({ model, find })}`);
  return response.ok ? (await response.json()).items : [];
}

/** @returns {Promise<Looks>} */
export async function looks() {
  return (await fetch("/web/looks.json")).json();
}

/**
 * An answer with its attention.
 * @param {Question} question @param {AbortSignal} signal
 * @returns {Promise<(Translation | AtOnce) & { attention: Attention }>}
 */
export async function explained(question, signal) {
  const response = await post("/v1/explain", { ...question, packed: true }, signal);
  return (await response.json()).answer;
}

/**
 * The answer of a model that answers at once, with its attention if it has any.
 * @param {Model} model @param {Asked} asked @param {AbortSignal} signal
 * @returns {Promise<AtOnce>}
 */
export async function answered({ name, task, heads }, asked, signal) {
  const question = { model: name, ...asked };
  if (heads) return /** @type {Promise<AtOnce>} */ (explained(question, signal));
  const route = task === "relation" ? "relate" : task;
  return (await (await post(`/v1/${route}`, question, signal)).json()).answers[0];
}

/**
 * How an answer begins, as it becomes certain; the last one is the whole.
 * @param {string} route @param {Question} question @param {AbortSignal} signal
 */
export async function* followed(route, question, signal) {
  const response = await post(`/v1/${route}`, { ...question, stream: true }, signal);
  for await (const { name, data } of events(response)) {
    if (name === "error") throw new Refusal(data.error.message);
    yield name === "answer" ? data.answer.text : data.text;
  }
}

/** The server-sent events of a response. @param {Response} response */
async function* events(response) {
  if (!response.body) return;
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const blocks = (rest + value).split("\n\n");
    rest = blocks.pop() ?? "";
    for (const block of blocks) {
      const [name, data] = block.split("\n").map((line) => line.slice(line.indexOf(": ") + 2));
      yield /** @type {Told} */ ({ name, data: JSON.parse(data) });
    }
  }
}
