/** Replaces API field names in the server's errors by the labels of this page. */

/** Reasons that follow a label without a colon: "must be at most 50". */
const VERB = /^(is|has|must|cannot|needs) /;

/** Return the error with the label `getLabel(field)` in place of the field's API name. Return it
 * unchanged if there is no label. */
export function withFieldLabel(
  error: unknown,
  getLabel: (field: string) => string | undefined,
): unknown {
  if (!(error instanceof Error)) return error;
  const field = "param" in error && typeof error.param === "string" ? error.param : null;
  const name = field === null ? undefined : getLabel(field);
  const prefix = `${field}: `;
  if (name === undefined || !error.message.startsWith(prefix)) return error;
  const reason = error.message.slice(prefix.length);
  return new Error(VERB.test(reason) ? `${name} ${reason}` : `${name}: ${reason}`);
}
