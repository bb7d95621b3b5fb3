// The data of the page, and access to its document.

/** @import { Attention } from "./numbers.js" */
/** @typedef {typeof import("./strings.json").en & { vocabulary: Record<string, string> }} Strings */
/** @typedef {Exclude<keyof Strings, "vocabulary">} Key of a sentence */
/**
 * The elements of page.html that are asked for more than any element has.
 * @typedef {{ [id: string]: HTMLElement, site: HTMLSelectElement, head: HTMLSelectElement,
 *   grid: HTMLCanvasElement, legend: HTMLCanvasElement }} Elements
 */

/** @template {string} Id @param {Id} id */
export const $ = (id) => /** @type {Elements[Id]} */ (document.getElementById(id));

/** @type {Attention & { palette: string, strings: Record<string, Strings> }} */
export const data = JSON.parse($("data").textContent ?? "");

/**
 * @template {keyof HTMLElementTagNameMap} Name
 * @param {Name} name @param {Partial<HTMLElementTagNameMap[Name]>} [properties] @param {(Node | string)[]} children
 * @returns {HTMLElementTagNameMap[Name]}
 */
export function element(name, properties = {}, ...children) {
  const node = Object.assign(document.createElement(name), properties);
  node.append(...children);
  return node;
}
