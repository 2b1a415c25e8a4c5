/** Icons of buttons, in lines of the text's colour. */

const PATHS = {
  attach:
    "M20 11.5 12.5 19a5 5 0 0 1-7-7L13 4.500a3.300 3.300 0 0 1 4.700 4.700l-7.500 7.500a1.600 1.600 0 0 1-2.300-2.300L15 7.300",
  camera: "M4 8h3l2-3h6l2 3h3v11H4zM12 10a3.500 3.500 0 1 0 .01 0",
  microphone: "M12 3a3 3 0 0 0-3 3v6a3 3 0 0 0 6 0V6a3 3 0 0 0-3-3zM5 11a7 7 0 0 0 14 0M12 18v3",
  send: "M5 12h14M13 6l6 6-6 6",
  stop: "M7 7h10v10H7z",
  copy: "M9 9h10v11H9zM5 15V4h10",
  edit: "M4 20l4-1L19 8l-3-3L5 16zM14 7l3 3",
  again: "M20 12a8 8 0 1 1-2.500-5.800M20 3v5h-5",
  play: "M8 5l11 7-11 7z",
  download: "M12 4v11M7 11l5 5 5-5M5 20h14",
  code: "M9 7l-5 5 5 5M15 7l5 5-5 5",
  menu: "M4 7h16M4 12h16M4 17h16",
  settings: "M4 7h9M17 7h3M15 5v4M4 17h3M11 17h9M9 15v4",
  trash: "M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13",
  close: "M6 6l12 12M18 6L6 18",
  plus: "M12 5v14M5 12h14",
  details: "M4 19V9M10 19V5M16 19v-7M4 19h16",
  muted: "M4 4l16 16M9 9v3a3 3 0 0 0 5 2M15 11V6a3 3 0 0 0-6-.5M5 11a7 7 0 0 0 11 6M12 18v3",
  key: "M14 10a4 4 0 1 0-3 3.900L13 16h2v2h2v2h3v-3l-6.500-6.500",
} as const;

export type IconName = keyof typeof PATHS;

export const Icon = ({ name }: { name: IconName }) => (
  <svg class="icon" viewBox="0 0 24 24" aria-hidden="true">
    <path d={PATHS[name]} />
  </svg>
);
