// Keyboard: g then a letter goes to a page, / searches, j and k walk down and up a table, ? says all this.
import { togglePause } from "./live.js";

const typing = (target) => target.closest("input, select, textarea, [contenteditable]");
let after = null;

function walk(step) {
  const links = [...document.querySelectorAll("main tbody a.cover")];
  if (!links.length) return;
  const at = links.indexOf(document.activeElement);
  const next = links[Math.min(links.length - 1, Math.max(0, at < 0 ? 0 : at + step))];
  next.focus();
  next.scrollIntoView({ block: "nearest" });
}

export function startKeys() {
  document.querySelector(".nav a[aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape" && typing(event.target)) { event.target.blur(); return; }
    if (typing(event.target) || document.querySelector("dialog[open]")) return;
    if (after === "g") {
      after = null;
      const link = document.querySelector(`.nav a[data-key="${CSS.escape(event.key)}"]`);
      if (link) { event.preventDefault(); link.click(); }
      return;
    }
    const does = {
      g: () => { after = "g"; setTimeout(() => { after = null; }, 1500); },
      "/": () => document.querySelector("[data-search]")?.focus(),
      j: () => walk(1),
      k: () => walk(-1),
      p: togglePause,
      t: () => document.querySelector("[data-theme-toggle]")?.click(),
      "?": () => document.getElementById("keys")?.showModal(),
    }[event.key];
    if (does) { event.preventDefault(); does(); }
  });
}
