// The two languages of the page.

import { $, element } from "/web/dom.js";

/** @typedef {typeof import("../../explain/web/strings.json").en & typeof import("./strings.json").en} Sentences */
/** @typedef {Sentences & { vocabulary: Record<string, string> }} Strings */
/** @typedef {Exclude<keyof Strings, "vocabulary">} Key of a sentence */

/** @type {Record<string, Strings>} */
let strings = {};
let language = navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en";

/** @param {Key} key @param {Record<string, string | number>} [values] */
export function say(key, values = {}) {
  return strings[language][key].replace(/\{(\w+)\}/g, (_, name) => String(values[name]));
}

/** @param {Record<string, string>} sentences the same in every language */
export function said(sentences) {
  return sentences[language];
}

/** Titles and names are made of few words; a language that lists them gets them translated. @param {string} name */
export function translated(name) {
  let result = name;
  for (const [word, other] of Object.entries(strings[language].vocabulary)) {
    result = result.replace(new RegExp(`\\b${word}\\b`, "gi"), other);
  }
  return result;
}

/** @param {Record<string, Strings>} known @param {() => void} onChange */
export function speak(known, onChange) {
  strings = known;
  const buttons = Object.entries(strings).map(([code, { name }]) => {
    const button = element("button", { type: "button", textContent: name, lang: code });
    button.addEventListener("click", () => {
      language = code;
      show();
    });
    return { code, button };
  });
  const show = () => {
    document.documentElement.lang = language === "zh" ? "zh-Hans" : "en";
    for (const { code, button } of buttons) button.setAttribute("aria-pressed", String(code === language));
    for (const node of document.querySelectorAll("[data-text]")) {
      node.textContent = say(/** @type {Key} */ (node.getAttribute("data-text")));
    }
    $("languages").setAttribute("aria-label", say("language"));
    onChange();
  };
  $("languages").replaceChildren(...buttons.map(({ button }) => button));
  show();
}
