// Forms that act: sent without leaving the page, answered by a sentence. A dialog asks first where the form says so.
import { refresh } from "./live.js";
import { zoned } from "./times.js";

export function toast(text, { bad = false, to = null } = {}) {
  const box = document.createElement("div");
  box.className = bad ? "toast is-bad" : "toast";
  box.setAttribute("role", bad ? "alert" : "status");
  const words = document.createElement("span");
  words.textContent = text;
  box.append(words);
  if (to) {
    const link = document.createElement("a");
    link.href = to;
    link.textContent = "Open";
    box.append(link);
  }
  document.querySelector(".toasts").append(box);
  setTimeout(() => box.remove(), bad ? 12000 : 6000);
}

async function send(form, button, said) {
  const answer = await fetch(button?.formAction && button.hasAttribute("formaction") ? button.formAction : form.action, {
    method: "POST", body: said, headers: { accept: "application/json" },
  });
  const told = await answer.json().catch(() => ({ error: `the server returned ${answer.status}` }));
  return { ok: answer.ok, told };
}

// Beside a dialog nobody can see or hear a toast: what is wrong with a form stands in it, at the field that it names.
function complain(form, text) {
  form.querySelector(".complaint")?.remove();
  for (const field of form.querySelectorAll("[aria-invalid]")) field.removeAttribute("aria-invalid");
  if (!text) return;
  if (!form.closest("dialog")) { toast(text, { bad: true }); return; }
  const name = text.match(/^([\w.]+): /)?.[1];
  const field = [...form.elements].find((one) => one.name && one.name === name)
    ?? (/^the arguments |^\$|JSON/.test(text) ? form.elements.args : null);
  const box = document.createElement("p");
  box.className = "complaint";
  box.setAttribute("role", "alert");
  box.id = `${form.closest("dialog").id}-complaint`;
  box.textContent = text;
  if (field) {
    field.setAttribute("aria-invalid", "true");
    field.setAttribute("aria-describedby", box.id);
    field.closest(".field")?.append(box);
    field.focus();
  } else form.querySelector(".buttons").before(box);
}

async function act(form, button) {
  complain(form, null);
  const buttons = form.querySelectorAll("button");
  const said = zoned(form, button); // before: a button that is disabled says nothing
  buttons.forEach((one) => { one.disabled = true; });
  try {
    const { ok, told } = await send(form, button, said);
    if (!ok) { complain(form, told.error); return; }
    form.closest("dialog")?.close();
    if (told.to && form.hasAttribute("data-follow")) { location.assign(told.to); return; }
    toast(told.says, { to: told.to });
    document.dispatchEvent(new CustomEvent("rowlock:did", { detail: told }));
    await refresh();
  } catch (error) {
    complain(form, `the dashboard cannot be reached: ${error.message}`);
  } finally {
    buttons.forEach((one) => { one.disabled = false; });
  }
}

export function startForms() {
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (!form.matches("form[data-act]")) return;
    event.preventDefault();
    act(form, event.submitter);
  });
  // <button data-dialog="id"> opens it, <button data-close> closes its own.
  document.addEventListener("click", (event) => {
    const opener = event.target.closest("[data-dialog]");
    if (opener) {
      const dialog = document.getElementById(opener.dataset.dialog);
      dialog.showModal();
      dialog.dispatchEvent(new CustomEvent("rowlock:opened", { bubbles: true, detail: { opener } }));
    }
    if (event.target.closest("[data-close]")) event.target.closest("dialog").close();
    if (event.target.closest("[data-theme-toggle]")) {
      const theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
      document.documentElement.dataset.theme = theme;
      localStorage.setItem("rowlock.theme", theme);
      document.dispatchEvent(new CustomEvent("rowlock:shown"));
    }
    const copied = event.target.closest("[data-copy]");
    if (copied) navigator.clipboard?.writeText(copied.dataset.copy).then(() => toast("Copied."));
  });
  // Filters apply as soon as something is chosen; what is typed, on Enter.
  document.addEventListener("change", (event) => {
    if (event.target.matches("form[data-filter] select, form[data-filter] input[type=checkbox]")) event.target.form.requestSubmit();
  });
}
