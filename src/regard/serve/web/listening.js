// Sound from the microphone or from a file goes to the server as it comes; words come back as they become certain.

import { $ } from "/web/dom.js";
import { say } from "/web/language.js";

const BLOCK = 2048; // samples sent at once from the microphone
const FILE_RATE = 16000; // samples a second that a file is brought to
const MOST_WAITING = 1 << 20; // bytes not yet taken by the network
const QUIETEST = -60; // decibels, the left end of the level meter

/** @type {Stream | null} */
let open = null;
let modelName = "";
let complain = /** @param {string} sentence */ (sentence) => {};

/** One stream: a socket, and what feeds it. */
class Stream {
  /** @param {number} rate */
  constructor(rate) {
    const query = new URLSearchParams({ model: modelName, rate: String(rate) });
    this.socket = new WebSocket(`${location.origin.replace(/^http/, "ws")}/v1/listen?${query}`);
    this.socket.binaryType = "arraybuffer";
    /** @type {ArrayBuffer[]} */
    this.waiting = [];
    this.stopped = false;
    /** @type {(() => void)[]} */
    this.closing = [];
    this.socket.addEventListener("open", () => this.flush());
    this.socket.addEventListener("message", ({ data }) => this.hear(JSON.parse(data)));
    this.socket.addEventListener("close", ({ code, reason }) => {
      if (code !== 1000 && open === this) complain(reason || say("lost"));
      this.release();
    });
    $("stable").textContent = $("tentative").textContent = "";
    $("heard").classList.add("waiting");
  }

  /** @param {{ text: string, rest: string, seconds: number, is_last: boolean, error?: { message: string } }} partial */
  hear(partial) {
    if (partial.error) return complain(partial.error.message);
    $("stable").textContent += partial.text;
    $("tentative").textContent = partial.rest;
    $("clock").textContent = clock(partial.seconds);
  }

  /** @param {Float32Array} samples */
  send(samples) {
    show(samples);
    this.waiting.push(whole(samples));
    this.flush();
  }

  flush() {
    if (this.socket.readyState !== WebSocket.OPEN) return;
    for (const block of this.waiting.splice(0)) this.socket.send(block);
  }

  /** Until the network has taken most of what was sent. */
  async room() {
    while (this.isOpen && this.socket.bufferedAmount > MOST_WAITING) await new Promise((done) => setTimeout(done, 50));
  }

  get isOpen() {
    return this.socket.readyState <= WebSocket.OPEN;
  }

  /** No more sound comes; the last words do. */
  end() {
    if (this.stopped) return;
    this.stopped = true;
    this.unplug();
    this.waiting.push(new ArrayBuffer(0));
    this.flush();
  }

  unplug() {
    for (const close of this.closing.splice(0)) close();
    show(new Float32Array(0));
  }

  release() {
    this.unplug();
    if (open !== this) return;
    open = null;
    $("heard").classList.remove("waiting");
    relabel();
  }
}

/** Samples as 16-bit ones, the smaller byte first. @param {Float32Array} samples */
function whole(samples) {
  const view = new DataView(new ArrayBuffer(2 * samples.length));
  samples.forEach((sample, at) => view.setInt16(2 * at, Math.max(-1, Math.min(1, sample)) * 32767, true));
  return view.buffer;
}

/** The level meter. @param {Float32Array} samples */
function show(samples) {
  const power = samples.reduce((sum, sample) => sum + sample * sample, 0) / Math.max(1, samples.length);
  const decibels = power ? 10 * Math.log10(power) : QUIETEST;
  $("level").style.width = `${Math.max(0, Math.min(100, 100 * (1 - decibels / QUIETEST)))}%`;
}

/** @param {number} seconds */
function clock(seconds) {
  const rest = Math.floor(seconds % 60).toString().padStart(2, "0");
  return `${Math.floor(seconds / 60)}:${rest}`;
}

async function record() {
  if (open) return open.end();
  complain("");
  let microphone;
  try {
    microphone = await navigator.mediaDevices.getUserMedia({ audio: true });
  } catch {
    return complain(say("noMicrophone"));
  }
  const context = new AudioContext();
  await context.audioWorklet.addModule("/web/microphone.js");
  const stream = (open = new Stream(context.sampleRate));
  const source = context.createMediaStreamSource(microphone);
  const node = new AudioWorkletNode(context, "microphone", { numberOfOutputs: 0, processorOptions: { block: BLOCK } });
  node.port.onmessage = ({ data }) => stream.send(data);
  source.connect(node);
  stream.closing.push(() => {
    node.port.onmessage = null;
    for (const track of microphone.getTracks()) track.stop();
    context.close();
  });
  relabel();
}

/** @param {File | undefined} file */
async function read(file) {
  if (!file) return;
  stop();
  complain("");
  const context = new AudioContext({ sampleRate: FILE_RATE });
  let sound;
  try {
    sound = await context.decodeAudioData(await file.arrayBuffer());
  } catch {
    return complain(say("noSound", { name: file.name }));
  } finally {
    context.close();
  }
  const stream = (open = new Stream(FILE_RATE));
  relabel();
  const channels = Array.from({ length: sound.numberOfChannels }, (_, at) => sound.getChannelData(at));
  for (let begin = 0; begin < sound.length && !stream.stopped && stream.isOpen; begin += FILE_RATE) {
    const mixed = new Float32Array(Math.min(FILE_RATE, sound.length - begin));
    for (const channel of channels) mixed.forEach((_, at) => (mixed[at] += channel[begin + at] / channels.length));
    stream.send(mixed);
    await stream.room();
    await new Promise((done) => setTimeout(done));
  }
  stream.end();
}

/** Ends a stream at once: another model is chosen. */
export function stop() {
  const stream = open;
  open = null;
  stream?.unplug();
  stream?.socket.close();
  if (stream) $("heard").classList.remove("waiting");
  relabel();
}

export function relabel() {
  $("record").textContent = say(open ? "stop" : "record");
  $("record").setAttribute("aria-pressed", String(Boolean(open)));
}

/** @param {string} name */
export function belongTo(name) {
  if (name !== modelName) stop();
  modelName = name;
}

/** @param {(sentence: string) => void} toComplain */
export function start(toComplain) {
  complain = toComplain;
  $("record").addEventListener("click", record);
  const chosen = /** @type {HTMLInputElement} */ ($("recording"));
  chosen.addEventListener("change", () => read(chosen.files?.[0]));
  const place = $("hearing");
  place.addEventListener("dragover", (event) => {
    event.preventDefault();
    place.classList.add("over");
  });
  place.addEventListener("dragleave", () => place.classList.remove("over"));
  place.addEventListener("drop", (event) => {
    event.preventDefault();
    place.classList.remove("over");
    read(event.dataTransfer?.files[0]);
  });
}
