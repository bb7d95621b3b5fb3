// How to search: a choice for most, and the settings of DecodeConfig for those who open them.

import { $, element, fill } from "/web/dom.js";
import { say } from "/web/language.js";

/** @import { Search } from "/web/ask.js" */

/** What a choice means, and which settings it leaves open. */
const CHOICES = /** @type {const} */ ({
  recipe: {},
  greedy: { beam: 1, groups: 1, sample: false },
  beam: { groups: 1, sample: false },
  sample: { groups: 1, sample: true },
});
const NUMBERS = {
  beam: { min: "1", max: "16", step: "1" },
  groups: { min: "1", max: "16", step: "1" },
  diversity: { min: "0", max: "100", step: "any" },
  length_penalty: { min: "0", max: "10", step: "any" },
  temperature: { min: "0.01", max: "100", step: "any" },
  top_k: { min: "0", max: "100000", step: "1" },
  top_p: { min: "0.01", max: "1", step: "any" },
  min_p: { min: "0", max: "1", step: "any" },
  seed: { min: "0", max: "2147483647", step: "1" },
  no_repeat: { min: "0", max: "100", step: "1" },
  repetition_penalty: { min: "0.01", max: "100", step: "any" },
  min_length: { min: "0", max: "1000", step: "1" },
  max_length: { min: "1", max: "1000", step: "1" },
};
const LISTS = ["must_include", "must_not"];
const PHRASES = ["prefix", ...LISTS];
const BEAM_BY_CHOICE = 4;

/** Fields for every setting; empty means: as the model was made. */
export function build() {
  const numbers = Object.entries(NUMBERS).map(([name, bounds]) => {
    const input = element("input", { type: "number", name, ...bounds });
    return element("label", {}, element("span", { textContent: name }), input);
  });
  const phrases = PHRASES.map((name) => {
    const input = element("input", { name, maxLength: 200 });
    return element("label", { className: "wide" }, element("span", { textContent: name }), input);
  });
  $("settings").replaceChildren(...numbers, ...phrases);
  $("more").addEventListener("click", () => {
    $("settings").hidden = !$("settings").hidden;
    $("more").setAttribute("aria-expanded", String(!$("settings").hidden));
  });
}

export function relabel() {
  const choices = /** @type {(keyof typeof CHOICES)[]} */ (Object.keys(CHOICES));
  fill($("search"), choices.map((choice) => [choice, say(choice)]));
}

/** What the model does unless told, as placeholders; of lists that are empty, how they are written.
 * @param {Search | null} decode */
export function suggest(decode) {
  for (const input of $("settings").querySelectorAll("input")) {
    const usual = String(decode?.[input.name] ?? "");
    input.placeholder = usual || (LISTS.includes(input.name) ? say("list") : "");
  }
}

/** The settings to send; one answer is shown, however many the model was made to give. */
export function chosen() {
  const choice = /** @type {keyof typeof CHOICES} */ ($("search").value);
  /** @type {Search} */
  const decode = { n_best: 1, ...CHOICES[choice], ...(choice === "beam" ? { beam: BEAM_BY_CHOICE } : {}) };
  for (const { name, value, type } of $("settings").querySelectorAll("input")) {
    if (value.trim() === "") continue;
    if (type === "number") decode[name] = Number(value);
    else decode[name] = !LISTS.includes(name) ? value : value.split(/[,，、]/).map((word) => word.trim()).filter(Boolean);
  }
  return decode;
}
