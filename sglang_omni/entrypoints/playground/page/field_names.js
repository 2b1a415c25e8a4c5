/** Errors of the server in the words of this page. */

/** How a reason begins that goes on from a name without a colon: "must be at most 50". */
const VERB = /^(is|has|must|cannot|needs) /;

/** The error, with `nameOf` of the field at fault in place of the field's name in the API. As it is
 * where there is none. */
export function named(error, nameOf) {
  const name = error.param ? nameOf(error.param) : undefined;
  const prefix = `${error.param}: `;
  if (name === undefined || !error.message.startsWith(prefix)) return error;
  const reason = error.message.slice(prefix.length);
  return new Error(VERB.test(reason) ? `${name} ${reason}` : `${name}: ${reason}`);
}
