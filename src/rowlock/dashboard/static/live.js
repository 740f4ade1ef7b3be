// The page as it changes: the server sends its main part again whenever it has changed, and only what differs is touched.
// A tab that nobody sees lets go of its stream. A page that cannot follow says so, in large, and keeps trying.

const main = () => document.querySelector("main");
const clock = (at) => at.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
let source = null;
let paused = false;
let seen = new Date(); // when what stands here was true
let since = null; // when it was lost
let retry = null;
let watch = null;

// The server says something every 10 seconds: a stream from which nothing comes is dead, whatever the browser believes.
const SILENCE = 25000;

// What is wrong, by the status that the page would have now.
const HEADLINES = {
  403: "The database refuses to show this.",
  404: "This is not here any more.",
  503: "The database does not respond.",
  504: "The database is too slow for this page.",
};

function say(state, text) {
  for (const live of document.querySelectorAll(".live")) {
    live.dataset.state = state;
    live.querySelector("span").textContent = text;
  }
}

// What is wrong, since when, and how old the figures are; they are greyed until there are others.
function lose(what, why) {
  since ??= new Date();
  const banner = document.querySelector(".banner");
  banner.querySelector("strong").textContent = what;
  banner.querySelector("span").textContent = `${why} Since ${clock(since)}; what is shown here is from ${clock(seen)}.`;
  banner.hidden = false;
  main().classList.add("is-stale");
  say("lost", "Not live");
}

function regain() {
  clearTimeout(retry);
  since = null;
  seen = new Date();
  document.querySelector(".banner").hidden = true;
  main().classList.remove("is-stale");
  say("live", "Live");
}

// From now on, something has to come.
function listen() {
  clearTimeout(watch);
  watch = setTimeout(() => {
    lose("The dashboard does not respond.", `Nothing has come from it for ${SILENCE / 1000} seconds; this page reconnects by itself.`);
    open();
  }, SILENCE);
}

function stumble(said) {
  const [, status, why] = said.match(/^(\d+) ([^]*)$/);
  lose(HEADLINES[status] ?? "This page cannot be loaded.", sentence(why));
}

const sentence = (text) => `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? "" : "."}`;

function open() {
  close();
  if (!main()?.hasAttribute("data-live") || paused || document.hidden) return;
  source = new EventSource(location.href);
  listen();
  source.addEventListener("page", (event) => { listen(); regain(); showSoon(event.data); });
  source.addEventListener("same", () => { listen(); regain(); });
  source.addEventListener("alive", listen);
  source.addEventListener("trouble", (event) => { listen(); stumble(event.data); });
  source.onerror = () => {
    clearTimeout(watch);
    if (source?.readyState === EventSource.CLOSED) { refused(); return; }
    clearTimeout(retry);
    retry = setTimeout(() => lose("The dashboard does not respond.", "It has stopped, or the network is down; this page reconnects by itself."), since ? 0 : 1000);
  };
}

// The browser asks no more for a stream that was refused: find out why, and go on asking unless somebody has to log in.
async function refused() {
  close();
  let why = "It has stopped, or the network is down; this page reconnects by itself.";
  let what = "The dashboard does not respond.";
  try {
    const answer = await fetch(location.href, { headers: { accept: "application/json" } });
    const told = await answer.json().catch(() => ({}));
    if (answer.status === 401) { lose("You are logged out.", "Reload the page to log in."); return; }
    what = answer.ok ? "This page does not update by itself." : "This page cannot be loaded.";
    why = sentence(told.error ?? (answer.ok ? "too many pages are being watched; close some tabs" : `the server returned ${answer.status}`));
  } catch { /* the network; said above */ }
  lose(what, why);
  retry = setTimeout(open, 3000);
}

function close() {
  clearTimeout(retry);
  clearTimeout(watch);
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

// A page that could not be loaded because something was away, or too slow, is loaded as soon as it can be. The pauses
// grow: each try of a page that is too slow costs the database two seconds.
function retryPage(pause = 2000) {
  setTimeout(async () => {
    const answer = await fetch(location.href, { headers: { accept: "text/html" } }).catch(() => null);
    if (answer && answer.status < 500) location.reload(); else retryPage(Math.min(pause * 1.5, 15000));
  }, pause);
}

export function startLive() {
  if (document.querySelector("[data-retry]")) { retryPage(); return; }
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) { close(); say("paused", "Paused"); } else open();
  });
  document.querySelector(".live")?.addEventListener("click", togglePause);
  addEventListener("pagehide", close);
  addEventListener("pageshow", (event) => { if (event.persisted) open(); });
  open();
}
