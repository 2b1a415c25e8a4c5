/** Elements of the page. Whatever is put into them stays text: nothing is parsed. */

/** The element of the page with this id. */
export const find = (id) => document.getElementById(id);

/** A new element with these properties, around nodes and texts. */
export function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

/** A button that is none of a form's. */
export function button(text, onclick, properties = {}) {
  return element("button", { type: "button", onclick, ...properties }, text);
}

/** The number in a field, which is called `name` where it is wrong. Throws where it holds none. */
export function checkedNumber(id, name) {
  const field = find(id);
  if (!field.reportValidity()) throw new Error(`${name}: ${field.validationMessage}`);
  return field.valueAsNumber;
}
