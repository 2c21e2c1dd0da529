// One stream of events a page. An event names what changed; the parts that listen to it are asked for again.
import { refresh } from "./part.js";

const { stream, source } = document.body.dataset;
const line = document.querySelector("[data-connection]");
let opened = false;
let wait = 1000;

function parts(kind) {
  return [...document.querySelectorAll("[data-part][data-on]")].filter((part) => !kind || part.dataset.on.split(" ").includes(kind));
}

// News may come in bursts (all of it at once, at first); each part is asked for once a burst.
const due = new Set();
let timer = null;

function heard(event) {
  const news = JSON.parse(event.data);
  if (stream && news.stream !== stream) return;
  for (const part of parts(news.kind)) due.add(part);
  timer ??= setTimeout(() => {
    timer = null;
    for (const part of due) refresh(part);
    due.clear();
  }, 200);
}

// A stream that was refused: whoever is signed out is told so and not asked for again.
async function again() {
  const answer = await fetch("/api/v1/me").catch(() => null);
  if (answer?.status === 401) {
    line.textContent = "This browser was signed out. Nothing new is shown here; open the page again to sign in.";
    return;
  }
  setTimeout(connect, wait);
  wait = Math.min(wait * 2, 15000);
}

function connect() {
  const events = new EventSource(source);
  events.onmessage = heard;
  events.onopen = () => {
    wait = 1000;
    line.textContent = "";
    // The stream begins after what the page shows; what happened while it was away is asked for once.
    if (opened) for (const part of parts()) refresh(part);
    opened = true;
  };
  events.onerror = () => {
    line.textContent = "Connection lost, trying again.";
    if (events.readyState !== EventSource.CLOSED) return; // the browser tries again by itself
    events.close();
    again();
  };
  addEventListener("pagehide", () => events.close(), { once: true });
}

// A page taken back from the browser's memory has an old stream and old parts.
addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
if (source) connect();
