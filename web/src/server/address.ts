/** URLs of the server that this page was loaded from. */

/** Return the URL of a route, wherever the page is mounted. */
export const resolveUrl = (path: string): URL => new URL(path, document.baseURI);
