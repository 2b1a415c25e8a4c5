/** Accessible tabs for mouse, keyboard and screen readers. */

const STEPS = { ArrowRight: 1, ArrowLeft: -1 };

/** Set up the tabs of a list, and select the first one. */
export function startTabs(list) {
  const tabs = [...list.querySelectorAll("[role=tab]")];
  const choose = (chosen) => {
    for (const tab of tabs) {
      tab.ariaSelected = String(tab === chosen);
      tab.tabIndex = tab === chosen ? 0 : -1;
      document.getElementById(tab.getAttribute("aria-controls")).hidden = tab !== chosen;
    }
  };
  const target = (key, tab) => {
    const visible = tabs.filter(({ hidden }) => !hidden);
    if (key === "Home") return visible[0];
    if (key === "End") return visible.at(-1);
    if (!(key in STEPS)) return null;
    return visible[(visible.indexOf(tab) + STEPS[key] + visible.length) % visible.length];
  };
  tabs.forEach((tab) => {
    tab.onclick = () => choose(tab);
    tab.onkeydown = (event) => {
      const next = target(event.key, tab);
      if (next === null) return;
      event.preventDefault();
      choose(next);
      next.focus();
    };
  });
  choose(tabs[0]);
}

/** Show or hide a tab. If it was selected, the first one takes its place. */
export function showTab(tab, isVisible) {
  tab.hidden = !isVisible;
  if (isVisible || tab.ariaSelected !== "true") return;
  tab.closest("[role=tablist]").querySelector("[role=tab]:not([hidden])").click();
}
