// The page as it changes: the server sends its main part anew whenever it is another one, and only what differs is touched.
// A tab that nobody sees lets go of its stream.

const main = () => document.querySelector("main");
let source = null;
let paused = false;

function say(state, text) {
  for (const live of document.querySelectorAll(".live")) {
    live.dataset.state = state;
    live.querySelector("span").textContent = text;
  }
}

function open() {
  close();
  if (!main()?.hasAttribute("data-live") || paused || document.hidden) return;
  source = new EventSource(location.href);
  source.addEventListener("page", (event) => { say("live", "Live"); showSoon(event.data); });
  source.onopen = () => say("live", "Live");
  source.addEventListener("trouble", () => say("lost", "No answer"));
  // A stream that the server has refused is not asked for again: who was logged out has to load the page.
  source.onerror = () => say("lost", source?.readyState === EventSource.CLOSED ? "Not live" : "Reconnecting");
}

function close() {
  source?.close();
  source = null;
}

// A machine that draws more slowly than the server sends shows the latest, and lets what came before it go.
let latest = null;
function showSoon(html) {
  if (latest === null) setTimeout(() => { const newest = latest; latest = null; show(newest); }, 30);
  latest = html;
}

// Forget nothing that the reader has begun: what they type, tick, open or look at stays.
function show(html) {
  if (document.querySelector("dialog[open]")) return;
  Idiomorph.morph(main(), html, {
    morphStyle: "innerHTML",
    ignoreActiveValue: true,
    callbacks: {
      beforeNodeMorphed(before, after) {
        if (!(before instanceof Element)) return true;
        if (before.matches("[data-chart]")) {
          if (before.dataset.chart !== after.dataset.chart) before.dataset.chart = after.dataset.chart;
          return false;
        }
        if (before.matches("input, select, textarea, [data-keep]")) return false;
        if (before.matches("details")) after.open = before.open;
        return true;
      },
    },
  });
  document.dispatchEvent(new CustomEvent("rowlock:shown"));
}

// After something was done here, do not wait for the next look.
export async function refresh() {
  if (!main()?.hasAttribute("data-live")) return;
  const answer = await fetch(location.href, { headers: { accept: "text/html" } });
  if (!answer.ok) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  show(page.querySelector("main").innerHTML);
}

export function togglePause() {
  paused = !paused;
  if (paused) { close(); say("paused", "Paused"); } else open();
}

export function startLive() {
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) { close(); say("paused", "Paused"); } else open();
  });
  document.querySelector(".live")?.addEventListener("click", togglePause);
  addEventListener("pagehide", close);
  addEventListener("pageshow", (event) => { if (event.persisted) open(); });
  open();
}
