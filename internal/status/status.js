// Refreshes the main part of a visible page every ten seconds. Every page is complete without this script.
"use strict";

const every = 10_000; // milliseconds
const control = document.querySelector(".follow");
const button = control.querySelector("button");
let paused = remembered();
let failing = false;
let tried = Date.now();

// remembered returns whether the user has paused the refresh. The browser keeps the choice for all pages, or for none.
function remembered() {
  try {
    return sessionStorage.getItem("paused") === "yes";
  } catch {
    return false;
  }
}

// describe shows the state of the refresh.
function describe() {
  control.querySelector("span").textContent = paused ? "Paused." : failing ? "No answer; retrying." : "Refreshes automatically.";
  button.textContent = paused ? "Resume" : "Pause";
}

// unwanted returns whether the page is paused or hidden, or the user fills in the form.
const unwanted = () => paused || document.hidden || document.activeElement?.closest("main form");

// renew loads the page again and shows it.
async function renew() {
  if (unwanted() || Date.now() - tried < every - 500) return;
  tried = Date.now();
  const page = await ask();
  failing = !page;
  describe();
  if (page && !unwanted()) show(page);
}

// ask returns the present page, or null after an error.
async function ask() {
  try {
    const answer = await fetch(location.href, { cache: "no-store", signal: AbortSignal.timeout(2 * every) });
    if (answer.status >= 500) return null;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    return page.querySelector("main#content") && page.querySelector(".seen") ? page : null;
  } catch {
    return null;
  }
}

// show replaces the page's content, keeps the focus, and announces changed notices to screen readers.
function show(page) {
  const before = new Set(news(document));
  const focused = document.activeElement;
  for (const part of [".seen", "main#content"]) match(document.querySelector(part), page.querySelector(part));
  if (focused !== document.activeElement && focused.isConnected) focused.focus({ preventScroll: true });
  const fresh = news(document).filter((text) => !before.has(text));
  if (fresh.length > 0) document.querySelector(".news").textContent = fresh.join(". ");
}

// news returns the texts that a screen reader announces after a change.
function news(page) {
  return [...page.querySelectorAll("main [data-news]")].map((e) => e.textContent.replace(/\s+/g, " ").trim());
}

// match makes the element here equal to there. It keeps nodes that exist in both, and with them focus, scroll position and
// unfolded details.
function match(here, there) {
  for (const name of new Set([...here.getAttributeNames(), ...there.getAttributeNames()])) {
    if (name === "open" || here.getAttribute(name) === there.getAttribute(name)) continue;
    if (there.hasAttribute(name)) here.setAttribute(name, there.getAttribute(name));
    else here.removeAttribute(name);
  }
  const old = [...here.childNodes];
  const pairs = [...there.childNodes].map((wanted) => {
    const at = old.findIndex((node) => node.nodeName === wanted.nodeName && key(node) === key(wanted));
    return [wanted, at < 0 ? null : old.splice(at, 1)[0]];
  });
  for (const node of old) node.remove();
  pairs.forEach(([wanted, kept], i) => {
    const node = kept ?? wanted;
    if (here.childNodes[i] !== node) here.insertBefore(node, here.childNodes[i] ?? null);
    if (kept instanceof Element) match(kept, wanted);
    else if (kept && kept.nodeValue !== wanted.nodeValue) kept.nodeValue = wanted.nodeValue;
  });
}

// key identifies a row or an entry by its link or its time.
function key(node) {
  if (node.nodeName !== "TR" && node.nodeName !== "LI") return "";
  const mark = node.querySelector("a, time");
  return mark ? mark.getAttribute("href") ?? mark.getAttribute("datetime") : "";
}

button.addEventListener("click", () => {
  paused = !paused;
  try {
    sessionStorage.setItem("paused", paused ? "yes" : "no");
  } catch {
    // The choice is kept for this page only.
  }
  tried = paused ? tried : 0;
  describe();
  renew();
});
document.addEventListener("visibilitychange", renew);
setInterval(renew, every);
describe();
control.hidden = false;
