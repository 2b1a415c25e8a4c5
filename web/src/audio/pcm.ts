/** Conversion between samples and base64 of 16-bit little-endian PCM. */

/** Decode base64 to samples from -1 to 1. */
export function decodePcm(text: string): Float32Array {
  const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  const view = new DataView(bytes.buffer);
  const count = bytes.length >> 1;
  return Float32Array.from({ length: count }, (_, at) => view.getInt16(2 * at, true) / 32768);
}

/** Encode samples as base64; values outside of -1 to 1 are clipped. */
export function encodePcm(samples: Float32Array): string {
  const bytes = new Uint8Array(toPcm(samples));
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
}

/** Return samples as 16-bit little-endian PCM. */
export function toPcm(samples: Float32Array): ArrayBuffer {
  const view = new DataView(new ArrayBuffer(2 * samples.length));
  samples.forEach((sample, at) => {
    const clipped = Math.max(-1, Math.min(1, sample));
    view.setInt16(2 * at, Math.round(clipped * 32767), true);
  });
  return view.buffer as ArrayBuffer;
}
