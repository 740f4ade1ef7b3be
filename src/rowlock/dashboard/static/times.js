// Times in the zone of the reader, or in UTC if they chose that; the other one is in the tooltip. The server writes UTC.
// What is typed into a field of date and time is meant in that zone, too.
const kept = "rowlock.zone";
const here = Intl.DateTimeFormat().resolvedOptions().timeZone;
const full = { dateStyle: "medium", timeStyle: "medium", hourCycle: "h23" };
const short = { hour: "2-digit", minute: "2-digit", hourCycle: "h23" };
const inUTC = () => localStorage.getItem(kept) === "utc";

export const zone = () => (inUTC() ? "UTC" : here);
export const clock = (at) => new Intl.DateTimeFormat([], { ...short, timeZone: zone() }).format(at);
const exact = (at, timeZone) => new Intl.DateTimeFormat([], { ...full, timeZone }).format(at);
const shown = (at) => exact(at, zone()) + (inUTC() ? " UTC" : "");

// What a form says, each date and time with its zone.
export function zoned(form, button) {
  const said = new FormData(form, button);
  for (const field of form.querySelectorAll("input[type=datetime-local]")) {
    if (field.name && field.value) said.set(field.name, inUTC() ? `${field.value}Z` : new Date(field.value).toISOString());
  }
  return new URLSearchParams(said);
}

function tell() {
  for (const time of document.querySelectorAll("time[datetime]")) {
    const at = new Date(time.dateTime);
    if (Number.isNaN(at.getTime())) continue;
    time.title = `${exact(at, here)} (${here})\n${at.toISOString().slice(0, 19).replace("T", " ")} UTC`;
    if (time.dataset.exact === "clock") time.textContent = clock(at);
    else if (time.hasAttribute("data-exact")) time.textContent = shown(at);
  }
  for (const title of document.querySelectorAll("title[data-at]")) title.textContent = shown(new Date(title.dataset.at)) + title.dataset.says;
  for (const hint of document.querySelectorAll("[data-zone-name]")) hint.textContent = inUTC() ? "in UTC" : `in the time of ${here}`;
  for (const button of document.querySelectorAll("[data-zone]")) {
    button.textContent = inUTC() ? "UTC" : "Local";
    button.title = inUTC() ? `Times are in UTC. Show them in ${here}` : `Times are in ${here}. Show them in UTC`;
  }
}

export function startTimes() {
  tell();
  document.addEventListener("rowlock:shown", tell);
  document.addEventListener("click", (event) => {
    if (!event.target.closest("[data-zone]")) return;
    localStorage.setItem(kept, inUTC() ? "local" : "utc");
    document.dispatchEvent(new CustomEvent("rowlock:shown"));
  });
}
