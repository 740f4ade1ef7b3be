// A dialog that many rows share: the button that opens it says what it is about.
document.addEventListener("rowlock:opened", (event) => {
  const said = JSON.parse(event.detail.opener.dataset.fill ?? "{}");
  for (const [name, value] of Object.entries(said)) {
    for (const field of event.target.querySelectorAll(`[name="${CSS.escape(name)}"]`)) field.value = value;
    for (const words of event.target.querySelectorAll(`[data-said="${CSS.escape(name)}"]`)) words.textContent = value;
  }
});
