// Times in the zone of the reader, or in UTC if they chose that; the other one is in the tooltip. The server writes UTC.
const kept = "rowlock.zone";
const here = Intl.DateTimeFormat().resolvedOptions().timeZone;
const full = { dateStyle: "medium", timeStyle: "medium", hourCycle: "h23" };
const short = { hour: "2-digit", minute: "2-digit", hourCycle: "h23" };
const inUTC = () => localStorage.getItem(kept) === "utc";

export const zone = () => (inUTC() ? "UTC" : here);
export const clock = (at) => new Intl.DateTimeFormat([], { ...short, timeZone: zone() }).format(at);
const exact = (at, timeZone) => new Intl.DateTimeFormat([], { ...full, timeZone }).format(at);

function tell() {
  for (const time of document.querySelectorAll("time[datetime]")) {
    const at = new Date(time.dateTime);
    if (Number.isNaN(at.getTime())) continue;
    time.title = `${exact(at, here)} (${here})\n${at.toISOString().slice(0, 19).replace("T", " ")} UTC`;
    if (time.dataset.exact === "clock") time.textContent = clock(at);
    else if (time.hasAttribute("data-exact")) time.textContent = exact(at, zone()) + (inUTC() ? " UTC" : "");
  }
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
