/** Helpers for elements. Strings are inserted as text and never parsed as HTML. */

/** Return the element with this id. */
export const find = (id) => document.getElementById(id);

/** Create an element with properties and children. */
export function createElement(name, properties = {}, ...children) {
  const node = Object.assign(document.createElement(name), properties);
  node.append(...children);
  return node;
}

/** Create a button that does not submit a form. */
export function createButton(text, onclick, properties = {}) {
  return createElement("button", { type: "button", onclick, ...properties }, text);
}

/** Return the number in a field. Throws an error with its `name` if the value is invalid. */
export function readNumber(id, name) {
  const field = find(id);
  if (!field.reportValidity()) throw new Error(`${name}: ${field.validationMessage}`);
  return field.valueAsNumber;
}
