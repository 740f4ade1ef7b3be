// Before anything is drawn: light or dark, as the reader chose, else as their system is.
const chosen = localStorage.getItem("rowlock.theme");
const dark = chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
document.documentElement.dataset.theme = dark ? "dark" : "light";
