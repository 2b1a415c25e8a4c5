/** 16-bit little-endian samples in base64, as they travel in JSON. */

/** Samples from -1 to 1. */
export function fromBase64(text) {
  const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  const view = new DataView(bytes.buffer);
  const count = bytes.length >> 1;
  return Float32Array.from({ length: count }, (_, at) => view.getInt16(2 * at, true) / 32768);
}

/** The base64 of samples from -1 to 1; what is beyond is clipped. */
export function toBase64(samples) {
  const view = new DataView(new ArrayBuffer(2 * samples.length));
  samples.forEach((sample, at) => {
    const clipped = Math.max(-1, Math.min(1, sample));
    view.setInt16(2 * at, Math.round(clipped * 32767), true);
  });
  const bytes = new Uint8Array(view.buffer);
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
}
