// Times in the zone of the reader, with UTC beside them: what the server writes is UTC.
const local = new Intl.DateTimeFormat([], { dateStyle: "medium", timeStyle: "medium", hourCycle: "h23" });
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;

function tell() {
  for (const time of document.querySelectorAll("time[datetime]")) {
    const at = new Date(time.dateTime);
    if (Number.isNaN(at.getTime())) continue;
    time.title = `${local.format(at)} (${zone})\n${at.toISOString().slice(0, 19).replace("T", " ")} UTC`;
    if (time.hasAttribute("data-exact")) time.textContent = local.format(at);
  }
}

export function startTimes() {
  tell();
  document.addEventListener("rowlock:shown", tell);
}
