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
  const target = (key, at) => {
    if (key === "Home") return tabs[0];
    if (key === "End") return tabs.at(-1);
    return key in STEPS ? tabs[(at + STEPS[key] + tabs.length) % tabs.length] : null;
  };
  tabs.forEach((tab, at) => {
    tab.onclick = () => choose(tab);
    tab.onkeydown = (event) => {
      const next = target(event.key, at);
      if (next === null) return;
      event.preventDefault();
      choose(next);
      next.focus();
    };
  });
  choose(tabs[0]);
}
