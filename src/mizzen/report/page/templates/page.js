"use strict";
for (const figure of document.querySelectorAll("figure.table")) {
  const body = figure.querySelector("tbody");
  const headings = [...figure.querySelectorAll("th")];
  const valueOf = (row, column) => {
    const cell = row.cells[column];
    return cell.dataset.value === undefined ? cell.textContent : Number(cell.dataset.value);
  };
  headings.forEach((heading, column) => {
    heading.querySelector("button").addEventListener("click", () => {
      const falling = heading.getAttribute("aria-sort") === "descending";
      const sign = falling ? 1 : -1;
      headings.forEach((other) => other.setAttribute("aria-sort", "none"));
      heading.setAttribute("aria-sort", falling ? "ascending" : "descending");
      const rows = [...body.rows].sort((one, other) => {
        const a = valueOf(one, column), b = valueOf(other, column);
        if (typeof a === "number" && typeof b === "number") return sign * (a - b);
        return sign * String(a).localeCompare(String(b));
      });
      body.append(...rows);
    });
  });
  figure.querySelector("input").addEventListener("input", (event) => {
    const words = event.target.value.toLowerCase().split(/\s+/);
    for (const row of body.rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
    }
  });
}
