/** The queue of playback, resampling and PCM. */

import assert from "node:assert/strict";
import { test } from "vitest";
import { decodePcm, encodePcm } from "../src/audio/pcm.ts";
import { PlaybackQueue } from "../src/audio/playback_queue.ts";
import { getLevel } from "../src/audio/recorder.ts";
import { Resampler } from "../src/audio/resampler.ts";
import { getSeconds, toWav } from "../src/audio/wav.ts";

const QUANTUM = 128;

/** What a queue plays in so many samples. */
function played(queue: PlaybackQueue, samples: number): Float32Array {
  const sound: number[] = [];
  while (sound.length < samples) sound.push(...queue.fill(new Float32Array(QUANTUM)));
  return Float32Array.from(sound);
}

const ramp = (from: number, count: number) =>
  Float32Array.from({ length: count }, (_, at) => (from + at) / 1e4);

test("pieces of any size are played without a gap, each sample once", () => {
  const queue = new PlaybackQueue(1000);
  let pushed = 1;
  for (const size of [1, 127, 128, 129, 0, 1000, 3]) {
    queue.push(ramp(pushed, size));
    pushed += size;
  }
  queue.end();
  const sound = played(queue, 1536);
  assert.deepEqual(sound.slice(0, 1388), ramp(1, 1388));
  assert.ok(sound.slice(1388).every((sample) => sample === 0));
  assert.equal(queue.played, 1388);
  assert.equal(queue.underruns, 0);
  assert.ok(queue.drained);
});

test("a sound that runs dry is one gap, and goes on when there is enough of it", () => {
  const queue = new PlaybackQueue(1000);
  queue.push(ramp(1, 100));
  played(queue, 512);
  assert.equal(queue.underruns, 1);
  queue.push(ramp(101, 199));
  assert.ok(played(queue, 256).every((sample) => sample === 0));
  queue.push(ramp(300, 1));
  assert.deepEqual(played(queue, 128), ramp(101, 128));
  assert.equal(queue.underruns, 1);
});

test("the rest of a sound is played however short it is", () => {
  const queue = new PlaybackQueue(1000);
  queue.push(ramp(1, 100));
  played(queue, 256);
  queue.push(ramp(101, 10));
  queue.end();
  assert.deepEqual(played(queue, 128).slice(0, 10), ramp(101, 10));
  assert.ok(queue.drained);
});

test("silence comes within milliseconds, without a click, and tells what was heard", () => {
  const queue = new PlaybackQueue(24_000);
  queue.push(new Float32Array(24_000).fill(0.5));
  played(queue, 1280);
  assert.equal(queue.stop(), 1280);
  const rest = played(queue, 512);
  const steps = rest.map((sample, at) => (at === 0 ? 0.5 : (rest[at - 1] as number)) - sample);
  assert.ok(Math.max(...steps) < 0.005);
  assert.ok(rest.slice(120).every((sample) => sample === 0));
  assert.ok(queue.drained);
  queue.push(ramp(1, 128));
  assert.deepEqual(played(queue, 128), ramp(1, 128));
  assert.equal(queue.played, 128);
});

test("samples survive their way through base64, and what is too loud is clipped", () => {
  const sound = Float32Array.from([0, 0.25, -0.5, 1, -1, 2, -2]);
  const back = decodePcm(encodePcm(sound));
  const expected = [0, 0.25, -0.5, 1, -1, 1, -1];
  back.forEach((sample, at) => assert.ok(Math.abs(sample - (expected[at] as number)) < 1e-4));
  assert.equal(encodePcm(Float32Array.from([1 / 32767])), "AQA=");
});

function tone(hertz: number, rate: number, seconds: number): Float32Array {
  const turn = (2 * Math.PI * hertz) / rate;
  return Float32Array.from({ length: rate * seconds }, (_, at) => Math.sin(turn * at));
}

const square = (sum: number, sample: number) => sum + sample * sample;
const level = (sound: Float32Array) => Math.sqrt(sound.reduce(square, 0) / sound.length);

/** A sound at another rate, in the pieces that browsers give. */
function resampled(sound: Float32Array, from: number, to: number): Float32Array {
  const resampler = new Resampler(from, to);
  const made: number[] = [];
  for (let at = 0; at < sound.length; at += QUANTUM) {
    made.push(...resampler.push(sound.subarray(at, at + QUANTUM)));
  }
  return Float32Array.from(made);
}

for (const rate of [48_000, 44_100, 16_000, 24_000]) {
  test(`a tone at ${rate} Hz is the same tone at 24000 Hz`, () => {
    const made = resampled(tone(1000, rate, 0.5), rate, 24_000);
    assert.ok(Math.abs(made.length - 12_000) < 100);
    const expected = tone(1000, 24_000, 0.5);
    const errors = made.map((sample, at) => sample - (expected[at] as number)).slice(100);
    assert.ok(level(errors) < 2e-3, `${level(errors)}`);
  });
}

test("what the lower rate cannot hold is left out", () => {
  assert.ok(level(resampled(tone(15_000, 48_000, 0.5), 48_000, 24_000).slice(100)) < 2e-3);
});

test("after each gap of a slow server more is buffered, until the sound ends", () => {
  const queue = new PlaybackQueue(1000);
  const waits: number[] = [];
  for (let gap = 0; gap < 5; gap += 1) {
    queue.push(ramp(1, 128));
    while (queue.underruns === gap) queue.fill(new Float32Array(QUANTUM));
    let buffered = 0;
    do {
      queue.push(ramp(1, 100));
      buffered += 100;
    } while (queue.fill(new Float32Array(QUANTUM)).every((sample) => sample === 0));
    waits.push(buffered);
  }
  assert.deepEqual(waits, [200, 400, 800, 1600, 1600]);
});

test("a recording becomes a WAV file with its rate and samples", async () => {
  const recording = { rate: 24_000, chunks: [ramp(1, 100), ramp(101, 50)] };
  assert.equal(getSeconds(recording), 150 / 24_000);
  const bytes = new DataView(await toWav(recording).arrayBuffer());
  const text = (at: number, length: number) =>
    String.fromCharCode(...new Uint8Array(bytes.buffer, at, length));
  assert.deepEqual([text(0, 4), text(8, 8), text(36, 4)], ["RIFF", "WAVEfmt ", "data"]);
  assert.equal(bytes.byteLength, 44 + 300);
  assert.deepEqual(
    [4, 24, 28, 40].map((at) => bytes.getUint32(at, true)),
    [336, 24_000, 48_000, 300],
  );
  assert.equal(bytes.getInt16(44 + 2 * 149, true), Math.round((150 / 1e4) * 32767));
});

test("a level goes from silence to loud speech", () => {
  assert.equal(getLevel(new Float32Array(960)), 0);
  assert.equal(getLevel(new Float32Array(960).fill(1)), 1);
  const quiet = getLevel(new Float32Array(960).fill(0.01));
  const loud = getLevel(new Float32Array(960).fill(0.1));
  assert.ok(0 < quiet && quiet < loud && loud < 1);
});
