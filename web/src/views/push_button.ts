/** Make a push-to-talk button. It is active while held by a pointer or the space bar. For users who
 * cannot hold it, such as those of a screen reader, a click starts and the next click ends. */

interface Handlers {
  press: () => void;
  release: () => void;
}

export function makeHoldable(button: HTMLButtonElement, { press, release }: Handlers): void {
  const start = () => {
    button.ariaPressed = "true";
    press();
  };
  const finish = () => {
    if (button.ariaPressed !== "true") return;
    button.ariaPressed = "false";
    release();
  };
  button.onpointerdown = (event) => {
    if (event.button !== 0) return;
    button.setPointerCapture(event.pointerId);
    start();
  };
  button.onpointerup = finish;
  button.onpointercancel = finish;
  button.onblur = finish;
  button.onkeydown = (event) => {
    if (event.key !== " " && event.key !== "Enter") return;
    event.preventDefault();
    if (!event.repeat) start();
  };
  button.onkeyup = (event) => {
    if (event.key !== " " && event.key !== "Enter") return;
    // Prevents the click that would follow.
    event.preventDefault();
    finish();
  };
  button.onclick = (event) => {
    // Clicks of a pointer have a count; its down and up events were handled already.
    if (event.detail > 0) return;
    if (button.ariaPressed === "true") finish();
    else start();
  };
}
