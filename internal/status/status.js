// Renews the main part of a page while somebody looks at it. Without this script the page stays as it came.
"use strict";

const every = 10_000; // milliseconds
const control = document.querySelector(".follow");
const button = control.querySelector("button");
let paused = remembered();
let failing = false;
let tried = Date.now();

// The wish lasts from page to page, or for one page where the browser keeps nothing.
function remembered() {
  try {
    return sessionStorage.getItem("paused") === "yes";
  } catch {
    return false;
  }
}

function say() {
  control.querySelector("span").textContent = paused ? "Paused." : failing ? "No answer; trying again." : "Renews itself.";
  button.textContent = paused ? "Go on" : "Pause";
}

// Nobody looks, or somebody fills in the form.
const unwanted = () => paused || document.hidden || document.activeElement?.closest("main form");

async function renew() {
  if (unwanted() || Date.now() - tried < every - 500) return;
  tried = Date.now();
  const page = await ask();
  failing = !page;
  say();
  if (page && !unwanted()) show(page);
}

// ask returns the page as it is now, or nothing.
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

function show(page) {
  const before = new Set(news(document));
  const focused = document.activeElement;
  for (const part of [".seen", "main#content"]) match(document.querySelector(part), page.querySelector(part));
  if (focused !== document.activeElement && focused.isConnected) focused.focus({ preventScroll: true });
  const fresh = news(document).filter((text) => !before.has(text));
  if (fresh.length > 0) document.querySelector(".news").textContent = fresh.join(". ");
}

// What is read aloud when it changes.
function news(page) {
  return [...page.querySelectorAll("main [data-news]")].map((e) => e.textContent.replace(/\s+/g, " ").trim());
}

// match makes an element what another one is, and keeps each node that stays: with it stay the focus, what is scrolled, and
// what is unfolded.
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

// key tells rows and entries apart: by where they lead, or by when they were.
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
    // It holds for this page.
  }
  tried = paused ? tried : 0;
  say();
  renew();
});
document.addEventListener("visibilitychange", renew);
setInterval(renew, every);
say();
control.hidden = false;
