// Questions to the server, and answers as they arrive.

/** What the server says instead of an answer. */
export class Refusal extends Error {}

/** @param {string} path @param {object} fields @param {AbortSignal} signal */
async function post(path, fields, signal) {
  const headers = { "Content-Type": "application/json" };
  const response = await fetch(path, { method: "POST", headers, body: JSON.stringify(fields), signal });
  if (!response.ok) throw new Refusal((await response.json()).error.message);
  return response;
}

export async function models() {
  const response = await fetch("/v1/models");
  return (await response.json()).models;
}

/** An answer with its attention. @param {object} fields @param {AbortSignal} signal */
export async function explained(fields, signal) {
  const response = await post("/v1/explain", { ...fields, packed: true }, signal);
  return (await response.json()).answer;
}

/** A label without attention. @param {object} fields @param {AbortSignal} signal */
export async function classified(fields, signal) {
  return (await (await post("/v1/classify", fields, signal)).json()).answers[0];
}

/**
 * How a translation begins, as it becomes certain; the last one is the whole.
 * @param {object} fields @param {AbortSignal} signal
 * @returns {AsyncGenerator<string>}
 */
export async function* translated(fields, signal) {
  const response = await post("/v1/translate", { ...fields, stream: true }, signal);
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
      yield { name, data: JSON.parse(data) };
    }
  }
}
