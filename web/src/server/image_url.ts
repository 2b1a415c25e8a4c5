/** Images that arrive as base64. */

/** Return an image; `type` is its media type. */
export function toImage(base64: string, type: string): Blob {
  const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  return new Blob([bytes], { type });
}

/** Return an object URL of an image in a data URI. Whoever shows it revokes it. */
export function createUrlOfDataUri(uri: string): string {
  const [head = "", data = ""] = uri.split(",", 2);
  const image = toImage(data, head.slice("data:".length).split(";")[0] ?? "");
  return URL.createObjectURL(image);
}
