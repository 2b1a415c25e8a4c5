/** A button that acts while it is held: by a pointer, by the space bar, or, for whoever cannot hold
 * it, such as a screen reader, from one click to the next. */

export function holdable(button, { press, release }) {
  const hold = () => {
    button.ariaPressed = "true";
    press();
  };
  const letGo = () => {
    if (button.ariaPressed !== "true") return;
    button.ariaPressed = "false";
    release();
  };
  button.onpointerdown = (event) => {
    if (event.button !== 0) return;
    button.setPointerCapture(event.pointerId);
    hold();
  };
  button.onpointerup = letGo;
  button.onpointercancel = letGo;
  button.onblur = letGo;
  button.onkeydown = (event) => {
    if (event.key !== " " && event.key !== "Enter") return;
    event.preventDefault();
    if (!event.repeat) hold();
  };
  button.onkeyup = (event) => {
    if (event.key !== " " && event.key !== "Enter") return;
    // Or it would count as a click.
    event.preventDefault();
    letGo();
  };
  button.onclick = (event) => {
    // A pointer's clicks have a number, and were held already.
    if (event.detail > 0) return;
    if (button.ariaPressed === "true") letGo();
    else hold();
  };
}
