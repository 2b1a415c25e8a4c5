/** Object URLs of images that arrive as base64. */

/** Return an object URL of an image; `type` is its media type. Whoever shows it revokes it. */
export function createImageUrl(base64: string, type: string): string {
  const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  return URL.createObjectURL(new Blob([bytes], { type }));
}

/** Return an object URL of an image in a data URI. */
export function createUrlOfDataUri(uri: string): string {
  const [head = "", data = ""] = uri.split(",", 2);
  return createImageUrl(data, head.slice("data:".length).split(";")[0] ?? "");
}
