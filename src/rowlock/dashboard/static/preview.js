// What a rule would mean, while it is typed: the server says it, in the words of its own page.
let waiting = null;
let asked = 0;

async function preview(pair) {
  const rule = pair.querySelector("[name=rule]").value.trim();
  if (!rule) return;
  const said = new URLSearchParams({ rule, tz: pair.querySelector("[name=tz]").value.trim() });
  const turn = ++asked;
  const answer = await fetch(`${pair.dataset.preview}?${said}`, { headers: { accept: "text/html" } });
  if (!answer.ok || turn !== asked) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  pair.querySelector("[data-previewed]").replaceChildren(...page.querySelector("#previewed").childNodes);
}

document.addEventListener("input", (event) => {
  const pair = event.target.closest("[data-preview]");
  if (!pair) return;
  clearTimeout(waiting);
  waiting = setTimeout(() => preview(pair).catch(() => {}), 250);
});
document.addEventListener("toggle", (event) => {
  const pair = event.target.open && event.target.querySelector("[data-preview]");
  if (pair) preview(pair).catch(() => {});
}, true);
