/** What the browser's audio thread offers, which TypeScript's library of the page lacks. */

declare const sampleRate: number;

declare abstract class AudioWorkletProcessor {
  readonly port: MessagePort;
  abstract process(inputs: Float32Array[][], outputs: Float32Array[][]): boolean;
}

declare function registerProcessor(
  name: string,
  processor: new (options: { processorOptions: { rate: number } }) => AudioWorkletProcessor,
): void;
