/** Server-sent events whose data are JSON objects. */

/** The objects in a stream of bytes, up to its end or `[DONE]`. Throws what an error event tells.
 */
export async function* serverSentEvents(body) {
  let rest = "";
  for await (const text of texts(body)) {
    const events = (rest + text).split("\n\n");
    rest = events.pop();
    for (const event of events) {
      const data = dataOf(event);
      if (data === "[DONE]") return;
      if (data) yield checked(JSON.parse(data));
    }
  }
}

/** Not every browser can iterate over a stream. */
async function* texts(body) {
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

/** The data of an event; comments have none. */
function dataOf(event) {
  const lines = event.split("\n").filter((line) => line.startsWith("data:"));
  return lines.map((line) => line.slice(5).trimStart()).join("\n");
}

function checked(object) {
  if (object.error) throw new Error(object.error.message);
  return object;
}
