/** Streams of events, errors with the page's labels, and requests as code. */

import assert from "node:assert/strict";
import { test } from "vitest";
import { toCode } from "../src/server/code.ts";
import { withFieldLabel } from "../src/server/field_names.ts";
import { parseServerSentEvents } from "../src/server/server_sent_events.ts";

/** The objects in a stream that comes in these pieces. */
async function objects(...pieces: string[]): Promise<unknown[]> {
  const encoder = new TextEncoder();
  const body = new ReadableStream<Uint8Array<ArrayBuffer>>({
    start(controller) {
      pieces.forEach((piece) => controller.enqueue(encoder.encode(piece)));
      controller.close();
    },
  });
  const found: unknown[] = [];
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

const refused = (param: string | null | undefined, message: string) =>
  Object.assign(new Error(message), { param });
const labels: Record<string, string> = {
  "messages.2.content.0.image_url.url": "bad.png",
  max_tokens: "Max tokens",
};

test("an error names what the user sees in place of a field of the API", () => {
  const cases = [
    ["messages.2.content.0.image_url.url", "is not an image", "bad.png is not an image"],
    ["messages.2.content.0.image_url.url", "the picture is large", "bad.png: the picture is large"],
    ["max_tokens", "must be at most 50", "Max tokens must be at most 50"],
  ];
  for (const [param, reason, expected] of cases as [string, string, string][]) {
    const error = refused(param, `${param}: ${reason}`);
    const named = withFieldLabel(error, (field) => labels[field]) as Error;
    assert.equal(named.message, expected);
  }
});

test("an error stays as it is where the user sees no such field", () => {
  for (const [param, message] of [
    ["seed", "seed: must be positive"],
    ["max_tokens", "the prompt leaves no room"],
    [null, "the thinker died"],
    [undefined, "The server does not answer."],
  ] as [string | null | undefined, string][]) {
    const error = refused(param, message);
    assert.equal(
      withFieldLabel(error, (field) => labels[field]),
      error,
    );
  }
});

const BODY = {
  model: "ming",
  messages: [
    {
      role: "user",
      content: [{ type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } }],
    },
    { role: "user", content: 'It\'s "here".' },
  ],
  stream: true,
  modalities: ["text", "audio"],
  top_k: 3,
};

test("a request as curl can be pasted into a shell", () => {
  const text = toCode("curl", "v1/chat/completions", BODY);
  assert.ok(text.startsWith("curl -N http://127.0.0.1:8000/v1/chat/completions \\\n"));
  const quoted = text.slice(text.indexOf("-d '") + 4, -1).replaceAll("'\\''", "'");
  const sent = JSON.parse(quoted);
  assert.equal(sent.messages[0].content[0].image_url.url, "data:…");
  assert.deepEqual(sent.messages[1], BODY.messages[1]);
});

test("a request in Python uses OpenAI's client, other fields in extra_body", () => {
  const text = toCode("python", "v1/chat/completions", BODY);
  assert.ok(text.includes('OpenAI(base_url="http://127.0.0.1:8000/v1", api_key="none")'));
  assert.ok(text.includes('client.chat.completions.create(\n    model="ming",'));
  assert.ok(text.includes("    stream=True,\n"));
  assert.ok(text.includes('    extra_body={\n        "top_k": 3,\n    },'));
});

test("a request in JavaScript needs no package", () => {
  const text = toCode("javascript", "v1/audio/speech", { input: "a", voice: "b" });
  assert.ok(text.includes('fetch("http://127.0.0.1:8000/v1/audio/speech"'));
  assert.ok(text.includes('"voice": "b"'));
});
