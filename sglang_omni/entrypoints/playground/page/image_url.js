/** Object URLs of images that arrive as base64. */

/** Return an object URL of an image; `type` is its media type. Whoever shows it revokes it. */
export function createImageUrl(base64, type) {
  const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  return URL.createObjectURL(new Blob([bytes], { type }));
}

/** Return the media type and the base64 text of a data URI. */
export function parseDataUri(uri) {
  const [head, data] = uri.split(",", 2);
  return { type: head.slice("data:".length).split(";")[0], data };
}
