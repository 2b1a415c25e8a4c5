/** Addresses of the server that this page came from. */

/** The address of a route, wherever the page is mounted. */
export const address = (path) => new URL(path, document.baseURI);
