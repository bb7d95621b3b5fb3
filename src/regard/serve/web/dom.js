// The few ways this page touches its document. Text goes in as textContent, and in no other way.

/**
 * The elements of index.html that are asked for more than any element has.
 * @typedef {{ [id: string]: HTMLElement, model: HTMLSelectElement, search: HTMLSelectElement, site: HTMLSelectElement,
 *   head: HTMLSelectElement, input: HTMLTextAreaElement, find: HTMLInputElement, context: HTMLTextAreaElement, second: HTMLTextAreaElement, legend: HTMLCanvasElement, file: HTMLInputElement, preview: HTMLImageElement }} Elements
 */

/** @template {string} Id @param {Id} id */
export const $ = (id) => /** @type {Elements[Id]} */ (document.getElementById(id));

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

/** @param {HTMLSelectElement} select @param {[string, string][]} options pairs of value and text */
export function fill(select, options) {
  const before = select.value;
  select.replaceChildren(...options.map(([value, textContent]) => element("option", { value, textContent })));
  if (options.some(([value]) => value === before)) select.value = before;
}
