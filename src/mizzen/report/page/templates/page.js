"use strict";
const wordsOf = (text) => text.toLowerCase().split(/\s+/).filter(Boolean);

for (const figure of document.querySelectorAll("figure.table")) {
  const body = figure.querySelector("tbody");
  const headings = [...figure.querySelectorAll("th")];
  const valueOf = (row, column) => {
    const cell = row.cells[column];
    if (cell.classList.contains("unknown")) return undefined;
    return cell.dataset.value === undefined ? cell.textContent : Number(cell.dataset.value);
  };
  headings.forEach((heading, column) => {
    heading.querySelector("button").addEventListener("click", () => {
      const falling = heading.getAttribute("aria-sort") === "descending";
      const sign = falling ? 1 : -1;
      headings.forEach((other) => other.setAttribute("aria-sort", "none"));
      heading.setAttribute("aria-sort", falling ? "ascending" : "descending");
      const keyed = [...body.rows].map((row) => [valueOf(row, column), row]);
      keyed.sort(([a], [b]) => {
        if (a === undefined || b === undefined) return (a === undefined) - (b === undefined);
        if (typeof a === "number" && typeof b === "number") return sign * (a - b);
        return sign * String(a).localeCompare(String(b));
      });
      body.append(...keyed.map(([, row]) => row));
    });
  });
  const input = figure.querySelector("input");
  if (!input) continue;
  const texts = new Map([...body.rows].map((row) => [row, row.textContent.toLowerCase()]));
  const filter = () => {
    const words = wordsOf(input.value);
    let shown = 0;
    for (const [row, text] of texts) {
      row.hidden = !words.every((word) => text.includes(word));
      shown += !row.hidden;
    }
    figure.querySelector("output").textContent = words.length ? `${shown} of ${texts.size}` : "";
  };
  input.addEventListener("input", filter);
  figure.addEventListener("reach", () => { input.value = ""; filter(); });
}

for (const figure of document.querySelectorAll("figure.listing")) {
  for (const button of figure.querySelectorAll("button")) {
    button.addEventListener("click", () => {
      for (const details of figure.querySelectorAll("details")) details.open = !!button.dataset.open;
    });
  }
}

{% include "pictures.js" %}

// A link may lead to a row that a filter hides, or into what is closed: show it first.
const reach = () => {
  document.querySelector(".reached")?.classList.remove("reached");
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!target) return;
  if (target.hidden) target.closest("figure")?.dispatchEvent(new Event("reach"));
  if (target.tagName === "DETAILS") target.open = true;
  if (target.tagName === "SECTION" || target.tagName === "MAIN") return;
  target.classList.add("reached");
  target.scrollIntoView({ block: "nearest" });
  (target.querySelector("summary") ?? target).focus({ preventScroll: true });
};
addEventListener("hashchange", reach);
reach();
