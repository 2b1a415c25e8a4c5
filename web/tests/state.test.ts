/** Figures, captions and stored conversations. */

import assert from "node:assert/strict";
import { beforeEach, test, vi } from "vitest";
import { Captions, endOfWord } from "../src/state/captions.ts";
import { RequestTimings } from "../src/state/measured.ts";
import { kept } from "./globals.ts";

test("figures are those of the user's waiting", () => {
  let now = 10;
  const timings = new RequestTimings(false, () => now);
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
    ["firstText", "0.250 s"],
    ["firstSound", "0.500 s"],
    ["ratio", "0.500"],
    ["speech", "2.00 s"],
    ["gaps", "2"],
  ]);
});

test("the first finished image is timed", () => {
  let now = 1;
  const timings = new RequestTimings(false, () => now);
  now = 3.5;
  timings.recordImage();
  now = 4;
  timings.recordImage();
  assert.deepEqual(timings.getFigures(), [["image", "2.500 s"]]);
});

test("what is heard after speech is measured from its end", () => {
  let now = 1;
  const timings = new RequestTimings(true, () => now);
  now = 1.5;
  timings.recordAudio(1);
  assert.deepEqual(timings.getFigures()[0], ["sinceSpeech", "0.500 s"]);
});

test("captions follow the segments of the speech", () => {
  const captions = new Captions();
  captions.addText("One two. ");
  captions.addAudio(2);
  captions.addText("Three.");
  captions.addAudio(1);
  captions.end();
  assert.deepEqual(
    [0, 1, 2, 2.5, 3, 9].map((time) => captions.at(time)),
    [0, 5, 9, 12, 15, 15],
  );
});

test("captions of a segment that is not complete go at the usual rate", () => {
  const captions = new Captions();
  captions.addText("A sentence of which little was said yet.");
  captions.addAudio(0.3);
  assert.equal(captions.at(0.2), 3);
  assert.equal(captions.at(100), "A sentence of which little was said yet.".length);
});

test("captions advance by words, and by characters where there are no blanks", () => {
  assert.equal(endOfWord("one two", 0), 0);
  assert.equal(endOfWord("one two", 2), 3);
  assert.equal(endOfWord("one two", 5), 7);
  assert.equal(endOfWord("你好吗", 1), 1);
});

beforeEach(() => {
  kept.clear();
  vi.resetModules();
});

/** The modules of a page that has just been loaded. */
async function load() {
  const history = await import("../src/state/history.ts");
  const conversations = await import("../src/state/conversation.ts");
  return { ...history, ...conversations };
}

/** Let the user say something, and have it answered. */
async function converse(question: string, answer: string) {
  const page = await load();
  page.keepConversations();
  const current = new page.Conversation();
  page.conversation.value = current;
  current.add(new page.Turn("user", question)).end();
  current.add(new page.Turn("assistant", answer)).end();
  await vi.waitFor(() => assert.ok(page.stored.value[0]?.turns.length === 2), 2000);
  return page;
}

test("a conversation is kept, found, shown, renamed and deleted", async () => {
  const page = await converse("Where is the mill?", "By the river.");
  const id = page.stored.value[0]?.id ?? "";
  const again = await load();
  assert.deepEqual(
    again.stored.value.map(({ title, turns }) => [title, turns.length]),
    [["Where is the mill?", 2]],
  );
  assert.equal(again.findConversations("river MILL").length, 1);
  assert.equal(again.findConversations("river sea").length, 0);
  const [first] = again.stored.value;
  assert.ok(first);
  again.openConversation(first);
  assert.deepEqual(
    again.conversation.value.turns.value.map(({ role, text }) => [role, text.value]),
    [
      ["user", "Where is the mill?"],
      ["assistant", "By the river."],
    ],
  );
  again.renameConversation(id, "Mills");
  assert.equal((await load()).stored.value[0]?.title, "Mills");
  again.deleteConversation(id);
  assert.equal(kept.size, 0);
});

test("what streams is not kept before it is complete", async () => {
  const page = await load();
  page.keepConversations();
  page.conversation.value.add(new page.Turn("assistant", "half"));
  await new Promise((resolve) => setTimeout(resolve, 500));
  assert.deepEqual(page.stored.value, []);
});

test("the oldest conversations make room for new ones", async () => {
  const old = (id: string) => ({
    id,
    title: id,
    changed: 0,
    turns: [{ role: "user", text: "x".repeat(1_400_000) }],
  });
  kept.set("sglang-omni-conversations", JSON.stringify([old("b"), old("a")]));
  const page = await converse("y".repeat(400_000), "yes");
  assert.deepEqual(page.stored.value.map(({ title }) => title).slice(1), ["b"]);
});

test("a store that another program has spoilt is an empty one", async () => {
  kept.set("sglang-omni-conversations", "{no json");
  assert.deepEqual((await load()).stored.value, []);
});
