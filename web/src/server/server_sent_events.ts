/** Parses server-sent events whose data are JSON objects. */

/** Yield the objects in a stream of bytes, up to its end or `[DONE]`. Throws the error of an error
 * event. */
export async function* parseServerSentEvents<T>(
  body: ReadableStream<Uint8Array<ArrayBuffer>>,
): AsyncGenerator<T> {
  let rest = "";
  for await (const text of readText(body)) {
    const events = (rest + text).split("\n\n");
    rest = events.pop() ?? "";
    for (const event of events) {
      const data = getEventData(event);
      if (data === "[DONE]") return;
      if (data) yield throwIfError(JSON.parse(data)) as T;
    }
  }
}

/** Yield the text of a stream. Not every browser can iterate over a stream itself. */
async function* readText(body: ReadableStream<Uint8Array<ArrayBuffer>>): AsyncGenerator<string> {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    await reader.cancel();
  }
}

/** Return the data of an event; comments have none. */
function getEventData(event: string): string {
  const lines = event.split("\n").filter((line) => line.startsWith("data:"));
  return lines.map((line) => line.slice(5).trimStart()).join("\n");
}

function throwIfError(object: { error?: { message: string } }): unknown {
  if (object.error) throw new Error(object.error.message);
  return object;
}
