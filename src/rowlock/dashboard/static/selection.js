// Ticked rows: how many there are, and what can be done with them. Ticks stay while the table changes below them.
const ticks = () => [...document.querySelectorAll("[data-tick]")];

function count() {
  const all = ticks();
  const ticked = all.filter((tick) => tick.checked);
  for (const tick of all) tick.closest("tr").toggleAttribute("data-is-ticked", tick.checked);
  for (const words of document.querySelectorAll("[data-ticked]")) {
    words.textContent = ticked.length ? `${ticked.length} ticked` : words.dataset.none;
  }
  for (const whole of document.querySelectorAll("[data-tick-all]")) {
    whole.checked = all.length > 0 && ticked.length === all.length;
    whole.indeterminate = ticked.length > 0 && ticked.length < all.length;
  }
}

function clear() {
  for (const tick of ticks()) tick.checked = false;
  count();
}

// What a verb would do comes up over the page; without this file it is a page of its own.
async function preview(form, button) {
  const said = new URLSearchParams(new FormData(form, button));
  const answer = await fetch(`${form.action}?${said}`, { headers: { accept: "text/html" } });
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const body = page.querySelector("[data-preview-body]");
  const dialog = document.querySelector("[data-preview-in]");
  if (!body || !dialog) { location.assign(`${form.action}?${said}`); return; }
  dialog.replaceChildren(...body.childNodes);
  dialog.querySelector("[data-leave]").addEventListener("click", (event) => { event.preventDefault(); dialog.close(); });
  dialog.showModal();
}

// After the first term, suggest the next one: a list knows only whole values.
function suggest(field) {
  const list = field.list;
  list.rowlock ??= [...list.options].map((option) => option.value);
  const before = field.value.slice(0, field.value.lastIndexOf(" ") + 1);
  if (list.dataset.before === before) return;
  list.dataset.before = before;
  list.replaceChildren(...list.rowlock.map((value) => new Option("", before + value)));
}

export function startSelection() {
  document.addEventListener("change", (event) => {
    if (event.target.matches("[data-tick-all]")) for (const tick of ticks()) tick.checked = event.target.checked;
    if (event.target.matches("[data-tick], [data-tick-all]")) count();
  });
  document.addEventListener("submit", (event) => {
    if (!event.target.matches("form[data-preview]")) return;
    event.preventDefault();
    preview(event.target, event.submitter);
  });
  document.addEventListener("input", (event) => { if (event.target.matches("[data-terms]")) suggest(event.target); });
  document.addEventListener("rowlock:shown", count);
  document.addEventListener("rowlock:did", clear);
  count();
}
