"use strict";

const SECONDS = 2;
const curves = document.getElementById("curves");
const state = document.getElementById("state");
const pause = document.getElementById("pause");
let shown = "";

async function refresh() {
  try {
    const answer = await fetch("/curves");
    const text = await answer.text();
    if (text !== shown) curves.innerHTML = shown = text;
    tell("Up to date.");
  } catch {
    tell("cntk watch has ended; this is what it showed last.");
  }
}

function tell(text) {
  if (state.textContent !== text) state.textContent = text;
}

function isPaused() {
  return pause.getAttribute("aria-pressed") === "true";
}

pause.addEventListener("click", () => {
  pause.setAttribute("aria-pressed", String(!isPaused()));
  tell(isPaused() ? "Paused." : "Loading.");
});

setInterval(() => isPaused() || document.hidden || refresh(), SECONDS * 1000);
refresh();
