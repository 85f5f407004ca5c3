// Pictures: keys and pointers go from item to item; what an item is, is told below the picture.
for (const figure of document.querySelectorAll("figure.picture")) {
  const scroller = figure.querySelector(".scroll"), told = figure.querySelector(".told");
  const items = [...figure.querySelectorAll("[data-item]")];
  const view = figure.querySelector("svg.window"), graph = figure.querySelector("svg.graph");
  const rowOf = (item) => Number(item.dataset.row);
  const middle = (item) => { const box = item.getBoundingClientRect(); return box.left + box.width / 2; };
  let chosen;

  const tell = (item) => {
    told.textContent = item.querySelector("title").textContent;
    if (!item.dataset.anchor) return;
    const link = document.createElement("a");
    link.href = `#${item.dataset.anchor}`;
    link.textContent = "Show its row";
    told.append(" ", link);
  };
  const choose = (item) => {
    if (!item) return;
    chosen?.classList.remove("chosen");
    chosen = item;
    item.classList.add("chosen");
    tell(item);
    follow(item);
  };

  // A window shows a part of what lies between data-from and data-to, stretched to its width.
  const width = view ? Number(view.getAttribute("width")) : 0;
  const shownPart = () => view.getAttribute("viewBox").split(" ").map(Number);
  const show = (left, wide) => {
    wide = Math.min(width, Math.max(wide, width / 4096));
    left = Math.min(width - wide, Math.max(0, left));
    view.setAttribute("viewBox", `${left} 0 ${wide} ${view.getAttribute("height")}`);
    const from = Number(view.dataset.from), whole = Number(view.dataset.to) - from;
    const start = Number(view.getAttribute("x"));
    const ticks = figure.querySelectorAll("text.tick");
    const digits = Math.max(0, Math.min(4, 2 - Math.floor(Math.log10(whole * wide / width))));
    ticks.forEach((tick, place) => {
      const value = from + whole * (left + wide * place / (ticks.length - 1)) / width;
      const text = value.toLocaleString("en", { maximumFractionDigits: digits });
      tick.textContent = tick.dataset.unit ? `${text} ${tick.dataset.unit}` : text;
    });
    for (const mark of figure.querySelectorAll("text.mark")) {
      const at = (Number(mark.dataset.at) - from) / whole * width;
      mark.setAttribute("x", start + (at - left) / wide * width);
      mark.style.display = at < left || at > left + wide ? "none" : "";
    }
  };
  const follow = (item) => {
    if (graph) { item.scrollIntoView({ block: "nearest", inline: "nearest" }); return; }
    if (!view) return;
    const [left, , wide] = shownPart();
    const start = Number(item.getAttribute("x")), size = Number(item.getAttribute("width"));
    if (start < left || start + size > left + wide) show(start + size / 2 - wide / 2, wide);
  };
  const zoomGraph = (factor) => {
    const box = graph.viewBox.baseVal, scale = graph.getBoundingClientRect().width / box.width;
    const next = factor ? Math.min(3, Math.max(0.1, scale * factor)) : 1;
    graph.setAttribute("width", box.width * next);
    graph.setAttribute("height", box.height * next);
    if (chosen) follow(chosen);
  };
  const zoom = (factor, at) => {
    if (graph) { zoomGraph(factor); return; }
    if (!view) return;
    if (!factor) { show(0, width); return; }
    const [left, , wide] = shownPart();
    const around = at ?? (chosen
      ? Number(chosen.getAttribute("x")) + Number(chosen.getAttribute("width")) / 2
      : left + wide / 2);
    show(around - (around - left) / factor, wide / factor);
  };
  for (const button of figure.querySelectorAll("button[data-zoom]")) {
    button.addEventListener("click", () => zoom(Number(button.dataset.zoom)));
  }

  const along = (step) => {
    const row = graph
      ? items.filter((item) => rowOf(item) === rowOf(chosen)).sort((a, b) => middle(a) - middle(b))
      : items.filter((item) => rowOf(item) === rowOf(chosen));
    choose(row[row.indexOf(chosen) + step]);
  };
  const across = (step) => {
    if (graph) {
      const before = chosen.dataset.after.split(" ").filter(Boolean).map(Number);
      const place = String(items.indexOf(chosen));
      choose(step < 0 ? items[before[0]]
        : items.find((item) => item.dataset.after.split(" ").includes(place)));
      return;
    }
    const row = items.filter((item) => rowOf(item) === rowOf(chosen) + step);
    const here = middle(chosen);
    choose(row.reduce((best, item) =>
      !best || Math.abs(middle(item) - here) < Math.abs(middle(best) - here) ? item : best, undefined));
  };
  const keys = {
    ArrowLeft: () => along(-1), ArrowRight: () => along(1),
    ArrowUp: () => across(-1), ArrowDown: () => across(1),
    Home: () => choose(items[0]), End: () => choose(items.at(-1)),
    Enter: () => { if (chosen.dataset.anchor) location.hash = chosen.dataset.anchor; },
  };
  const zooms = { "+": 2, "=": 2, "-": 0.5, "0": 0 };
  scroller.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || !items.length) return;
    if (event.key in zooms) zoom(zooms[event.key]);
    else if (!(event.key in keys)) return;
    else if (chosen) keys[event.key]();
    else choose(items[event.key === "End" ? items.length - 1 : 0]);
    event.preventDefault();
  });
  scroller.addEventListener("pointerover", (event) => {
    const item = event.target.closest?.("[data-item]");
    if (item) tell(item); else if (chosen) tell(chosen);
  });
  scroller.addEventListener("click", (event) => choose(event.target.closest?.("[data-item]")));
  scroller.addEventListener("dblclick", (event) => {
    const item = event.target.closest?.("[data-item]");
    if (item?.dataset.anchor) location.hash = item.dataset.anchor;
  });
  if (!view) continue;
  const placeOf = (event) => {
    const [left, , wide] = shownPart(), box = view.getBoundingClientRect();
    return left + wide * (event.clientX - box.left) / box.width;
  };
  scroller.addEventListener("wheel", (event) => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    zoom(event.deltaY < 0 ? 1.25 : 0.8, placeOf(event));
  }, { passive: false });
  let held;
  scroller.addEventListener("pointerdown", (event) => { held = placeOf(event); });
  addEventListener("pointerup", () => { held = undefined; });
  scroller.addEventListener("pointermove", (event) => {
    if (held === undefined) return;
    const [left, , wide] = shownPart();
    show(left + held - placeOf(event), wide);
  });
}
