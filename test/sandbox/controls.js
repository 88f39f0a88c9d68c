// Without this script every form has its button. With it a slider acts when it is let go, and the page follows the cloud.
"use strict";

const busy = new Set(); // forms whose slider is being moved

for (const form of document.querySelectorAll("form[data-live]")) {
  form.querySelector("button").hidden = true;
  form.addEventListener("input", (e) => {
    busy.add(form);
    e.target.closest(".field").querySelector("output").value = e.target.value;
  });
  form.addEventListener("change", async () => {
    await fetch(form.action, { method: "POST", body: new URLSearchParams(new FormData(form)), redirect: "manual" });
    busy.delete(form);
  });
}

// set moves a slider to what the cloud says.
function set(form, name, value, max) {
  const input = form.elements[name];
  if (max) input.max = max;
  input.value = value;
  input.closest(".field").querySelector("output").value = value;
}

async function follow() {
  try {
    const answer = await fetch("now");
    if (!answer.ok) return;
    const now = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const part of now.querySelectorAll("[id]")) {
      const here = document.getElementById(part.id);
      if (here && here.innerHTML !== part.innerHTML && !here.contains(document.activeElement)) here.replaceChildren(...part.cloneNode(true).childNodes);
      const form = here && here.closest("form[data-live]");
      if (!form || busy.has(form)) continue;
      set(form, "used", part.dataset.used, part.dataset.volume);
      set(form, "cpu", part.dataset.cpu);
      set(form, "memory", part.dataset.memory);
    }
  } catch {
    // The sandbox has ended, or is busy: the next look says.
  }
}

setInterval(follow, 2000);
