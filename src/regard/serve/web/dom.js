// The few ways this page touches its document. Text goes in as textContent, and in no other way.

/** @param {string} id */
export const $ = (id) => /** @type {HTMLElement & Record<string, any>} */ (document.getElementById(id));

/**
 * @param {string} name
 * @param {Record<string, any>} [properties]
 * @param {(Node | string)[]} children
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
