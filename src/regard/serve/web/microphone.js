// What the microphone gives, in blocks: runs beside the page, where sound is made.

class Microphone extends AudioWorkletProcessor {
  /** @param {{ processorOptions: { block: number } }} options */
  constructor({ processorOptions }) {
    super();
    this.block = new Float32Array(processorOptions.block);
    this.filled = 0;
  }

  /** @param {Float32Array[][]} inputs */
  process([channels]) {
    if (!channels.length) return true;
    for (let at = 0; at < channels[0].length; at++) {
      let sum = 0;
      for (const channel of channels) sum += channel[at];
      this.block[this.filled++] = sum / channels.length;
      if (this.filled === this.block.length) {
        this.port.postMessage(this.block.slice());
        this.filled = 0;
      }
    }
    return true;
  }
}

registerProcessor("microphone", Microphone);
