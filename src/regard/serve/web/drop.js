// A file for a model that reads files: chosen, dropped anywhere on the page, or pasted.

import { $ } from "/web/dom.js";
import { say } from "/web/language.js";

/** @import { Model } from "/web/ask.js" */

/** @type {File | null} */
let file = null;
let accepts = "";
let changed = () => {};

/** The input that is a file, of a model that has one. @param {Model} model */
export const fileOf = (model) => model.inputs.find((input) => input.file);

/** @param {() => void} whenChanged */
export function start(whenChanged) {
  changed = whenChanged;
  $("drop").addEventListener("click", () => $("file").click());
  $("file").addEventListener("change", () => take($("file").files));
  for (const kind of /** @type {const} */ (["dragover", "dragleave", "drop"])) {
    document.addEventListener(kind, (event) => {
      if ($("files").hidden || !event.dataTransfer?.types.includes("Files")) return;
      event.preventDefault();
      $("drop").classList.toggle("over", kind === "dragover");
      if (kind === "drop") take(event.dataTransfer.files);
    });
  }
  document.addEventListener("paste", (event) => {
    if (!$("files").hidden && event.clipboardData?.files.length) take(event.clipboardData.files);
  });
}

/** What depends on the model: a file of another kind is nothing to it. @param {Model} model */
export function belongTo(model) {
  const input = fileOf(model);
  $("files").hidden = !input;
  if (!input) return;
  if (input.accepts !== accepts) {
    file = null;
    $("preview").hidden = true;
  }
  accepts = input.accepts;
  $("file").accept = accepts;
  relabel();
}

export function relabel() {
  $("drop-hint").textContent = file ? file.name : say(accepts === "image/*" ? "dropPicture" : "dropFile");
}

export const isThere = () => file !== null;

/** @param {FileList | null} files */
async function take(files) {
  if (!files?.length) return;
  file = files[0];
  relabel();
  $("preview").hidden = !file.type.startsWith("image/");
  if (!$("preview").hidden) $("preview").src = await dataUrl(file); // the page allows no blob: addresses
  changed();
}

/** The file in base64. */
export async function content() {
  return file ? (await dataUrl(file)).replace(/^[^,]*,/, "") : "";
}

/** @param {File} one @returns {Promise<string>} */
function dataUrl(one) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result));
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(one);
  });
}
