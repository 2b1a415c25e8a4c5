/** The modules of the page that need no browser; `test_modules.py` runs this beside copies of them.
 */

import assert from "node:assert/strict";
import { test } from "node:test";

import { withFieldLabel } from "./field_names.js";
import { RequestTimings } from "./measured.js";
import { decodePcm, encodePcm } from "./pcm.js";
import { PlaybackQueue } from "./playback_queue.js";
import { Resampler } from "./resampler.js";
import { parseServerSentEvents } from "./server_sent_events.js";

const QUANTUM = 128;

/** What a queue plays in so many samples. */
function played(queue, samples) {
  const sound = [];
  while (sound.length < samples) sound.push(...queue.fill(new Float32Array(QUANTUM)));
  return Float32Array.from(sound);
}

const ramp = (from, count) => Float32Array.from({ length: count }, (_, at) => (from + at) / 1e4);

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
  const steps = rest.map((sample, at) => (at === 0 ? 0.5 : rest[at - 1]) - sample);
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
  back.forEach((sample, at) => assert.ok(Math.abs(sample - expected[at]) < 1e-4));
  assert.equal(encodePcm(Float32Array.from([1 / 32767])), "AQA=");
});

function tone(hertz, rate, seconds) {
  const turn = (2 * Math.PI * hertz) / rate;
  return Float32Array.from({ length: rate * seconds }, (_, at) => Math.sin(turn * at));
}

const square = (sum, sample) => sum + sample * sample;
const level = (sound) => Math.sqrt(sound.reduce(square, 0) / sound.length);

/** A sound at another rate, in the pieces that browsers give. */
function resampled(sound, from, to) {
  const resampler = new Resampler(from, to);
  const made = [];
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
    const errors = made.map((sample, at) => sample - expected[at]).slice(100);
    assert.ok(level(errors) < 2e-3, `${level(errors)}`);
  });
}

test("what the lower rate cannot hold is left out", () => {
  assert.ok(level(resampled(tone(15_000, 48_000, 0.5), 48_000, 24_000).slice(100)) < 2e-3);
});

/** The objects in a stream that comes in these pieces. */
async function objects(...pieces) {
  const encoder = new TextEncoder();
  const body = new ReadableStream({
    start(controller) {
      pieces.forEach((piece) => controller.enqueue(encoder.encode(piece)));
      controller.close();
    },
  });
  const found = [];
  for await (const object of parseServerSentEvents(body)) found.push(object);
  return found;
}

test("events are read however they are cut, and comments are none", async () => {
  const pieces = ['data: {"a"', ":1}\n", '\n: keep-alive\n\ndata: {"b":2}\n\ndata: [DO', "NE]\n\n"];
  assert.deepEqual(await objects(...pieces), [{ a: 1 }, { b: 2 }]);
});

test("an error event is thrown with the server's words", async () => {
  const event = 'data: {"error":{"message":"the thinker died"}}\n\n';
  await assert.rejects(objects('data: {"a":1}\n\n', event), { message: "the thinker died" });
});

const refused = (param, message) => Object.assign(new Error(message), { param });
const labels = { "messages.2.content.0.image_url.url": "bad.png", max_tokens: "Max tokens" };

test("an error names what the user sees in place of a field of the API", () => {
  const cases = [
    ["messages.2.content.0.image_url.url", "is not an image", "bad.png is not an image"],
    ["messages.2.content.0.image_url.url", "the picture is large", "bad.png: the picture is large"],
    ["max_tokens", "must be at most 50", "Max tokens must be at most 50"],
  ];
  for (const [param, reason, expected] of cases) {
    const error = refused(param, `${param}: ${reason}`);
    assert.equal(withFieldLabel(error, (field) => labels[field]).message, expected);
  }
});

test("an error stays as it is where the user sees no such field", () => {
  for (const [param, message] of [
    ["seed", "seed: must be positive"],
    ["max_tokens", "the prompt leaves no room"],
    [null, "the thinker died"],
    [undefined, "The server does not answer."],
  ]) {
    const error = refused(param, message);
    assert.equal(withFieldLabel(error, (field) => labels[field]), error);
  }
});

test("figures are those of the user's waiting", () => {
  let now = 10;
  const timings = new RequestTimings(() => now);
  assert.deepEqual(timings.getFigures(), []);
  now = 10.25;
  timings.recordText();
  now = 10.5;
  timings.recordAudio(1);
  now = 11;
  timings.recordText();
  timings.recordAudio(1);
  timings.recordUnderruns(2);
  assert.deepEqual(timings.getFigures(), [
    ["First text", "0.250 s"],
    ["First sound", "0.500 s"],
    ["Real-time ratio", "0.500"],
    ["Speech", "2.00 s"],
    ["Gaps", "2"],
  ]);
});

test("the first finished image is timed", () => {
  let now = 1;
  const timings = new RequestTimings(() => now);
  now = 3.5;
  timings.recordImage();
  now = 4;
  timings.recordImage();
  assert.deepEqual(timings.getFigures(), [["Image", "2.500 s"]]);
});
