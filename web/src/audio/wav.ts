/** WAV files of speech that was streamed. */

import { toPcm } from "./pcm.ts";

const HEADER_BYTES = 44;

/** Samples of one channel from -1 to 1, in the chunks in which they came. */
export interface Recording {
  rate: number;
  chunks: Float32Array[];
}

/** Return a WAV file with 16 bits a sample. */
export function toWav({ rate, chunks }: Recording): Blob {
  const data = chunks.map(toPcm);
  const bytes = data.reduce((sum, chunk) => sum + chunk.byteLength, 0);
  const header = new DataView(new ArrayBuffer(HEADER_BYTES));
  const write = (at: number, text: string) => {
    [...text].forEach((character, index) => header.setUint8(at + index, character.charCodeAt(0)));
  };
  write(0, "RIFF");
  header.setUint32(4, HEADER_BYTES - 8 + bytes, true);
  write(8, "WAVEfmt ");
  header.setUint32(16, 16, true);
  header.setUint16(20, 1, true);
  header.setUint16(22, 1, true);
  header.setUint32(24, rate, true);
  header.setUint32(28, 2 * rate, true);
  header.setUint16(32, 2, true);
  header.setUint16(34, 16, true);
  write(36, "data");
  header.setUint32(40, bytes, true);
  return new Blob([header, ...data], { type: "audio/wav" });
}

/** Return the length of a recording in seconds. */
export const getSeconds = ({ rate, chunks }: Recording): number =>
  chunks.reduce((sum, chunk) => sum + chunk.length, 0) / rate;
