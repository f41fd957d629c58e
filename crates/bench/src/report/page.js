"use strict";
const root = document.documentElement;
const tip = document.getElementById("tip");
const dark = () => (root.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
document.getElementById("theme").addEventListener("click", () => { root.dataset.theme = dark() ? "light" : "dark"; });
for (const tile of document.querySelectorAll(".tile")) {
  tile.addEventListener("click", () => {
    const chosen = root.dataset.only === tile.dataset.series;
    for (const other of document.querySelectorAll(".tile")) other.setAttribute("aria-pressed", "false");
    if (chosen) { delete root.dataset.only; return; }
    root.dataset.only = tile.dataset.series;
    tile.setAttribute("aria-pressed", "true");
  });
}
for (const hit of document.querySelectorAll(".hit")) {
  hit.addEventListener("pointerenter", () => {
    tip.textContent = hit.dataset.tip;
    tip.style.display = "block";
    const place = hit.getBoundingClientRect();
    const left = place.left + place.width / 2 - tip.offsetWidth / 2;
    tip.style.left = Math.max(8, Math.min(left, innerWidth - tip.offsetWidth - 8)) + "px";
    tip.style.top = Math.max(8, place.top - tip.offsetHeight - 4) + "px";
  });
  hit.addEventListener("pointerleave", () => { tip.style.display = "none"; });
}
addEventListener("scroll", () => { tip.style.display = "none"; }, { passive: true });
