// One figure of the page: its drawing, the choice among several, notes, and the tools below.
import { drawBars } from "./bars.js";
import { drawHistogram } from "./histogram.js";
import { drawLines } from "./lines.js";
import { drawPlane } from "./plane.js";
import { csv, download, standaloneSvg } from "./save.js";

const drawers = { bars: drawBars, lines: drawLines, plane: drawPlane, histogram: drawHistogram };

export function draw(figure, index, width) {
  const drawing = figure.drawings[index];
  const label = [figure.title, drawing.name].filter(Boolean).join(", ");
  return drawers[figure.kind](drawing.data, width, label, `${figure.id}-${index}`);
}

export const fileName = (figure, index) => [figure.id, figure.drawings[index].name].filter(Boolean).join("-")
  .replace(/[^A-Za-z0-9.-]+/g, "-").replace(/^-+|-+$/g, "").toLowerCase();

function element(tag, text, attributes = {}) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

function tableOf(table, title) {
  const box = element("div", undefined, { class: "scroll", tabindex: "0", role: "region", "aria-label": `Numbers of ${title}` });
  const made = box.appendChild(element("table"));
  const head = made.appendChild(element("thead")).appendChild(element("tr"));
  for (const column of table.columns) head.append(element("th", column, { scope: "col" }));
  const body = made.appendChild(element("tbody"));
  for (const row of table.rows) {
    const line = body.appendChild(element("tr"));
    for (const value of row) {
      line.append(typeof value === "number" ? element("td", String(Number(value.toPrecision(6))), { class: "number" }) : element("td", value ?? ""));
    }
  }
  return box;
}

export class FigureOnPage {
  constructor(figure, place) {
    this.figure = figure;
    this.place = place;
    this.index = 0;
    this.find = (name) => place.querySelector(`:scope > ${name}`);
    this.makeChoice();
    this.makeTools();
    this.show();
  }

  get drawing() { return this.figure.drawings[this.index]; }

  makeChoice() {
    const { drawings } = this.figure;
    const name = drawings[0].name;
    if (drawings.length === 1) {
      if (name) this.find(".choice").textContent = name;
      return;
    }
    const label = this.find(".choice").appendChild(element("label", "Shown: "));
    const select = label.appendChild(element("select"));
    drawings.forEach((drawing, i) => select.append(element("option", drawing.name, { value: i })));
    this.printed = label.appendChild(element("span", name, { class: "printed" }));
    select.addEventListener("change", () => {
      this.index = Number(select.value);
      this.printed.textContent = this.drawing.name;
      this.show();
    });
  }

  makeTools() {
    const tools = this.find(".tools");
    const button = (text, work) => {
      const made = tools.appendChild(element("button", text, { type: "button" }));
      made.addEventListener("click", () => work(made));
      return made;
    };
    this.toggle = button("show numbers", () => {
      this.open = !this.open;
      this.showTable();
    });
    this.toggle.setAttribute("aria-expanded", "false");
    button("download CSV", () => download(`${fileName(this.figure, this.index)}.csv`, "text/csv", csv(this.drawing.table)));
    button("save as SVG", () => download(`${fileName(this.figure, this.index)}.svg`, "image/svg+xml", standaloneSvg(this.find(".drawing").firstChild)));
  }

  showTable() {
    this.find(".tools").querySelector(".scroll")?.remove();
    this.toggle.textContent = this.open ? "hide numbers" : "show numbers";
    this.toggle.setAttribute("aria-expanded", String(Boolean(this.open)));
    if (this.open) this.find(".tools").append(tableOf(this.drawing.table, this.figure.title));
  }

  show() {
    this.redraw();
    this.find(".notes").replaceChildren(...this.drawing.notes.map((note) => element("li", note)));
    if (this.open) this.showTable();
  }

  // `fixed`: another width than the place has now (paper).
  redraw(fixed) {
    const box = this.find(".drawing");
    const width = fixed ?? Math.max(240, Math.round(box.clientWidth));
    if (this.width === width && this.shown === this.index) return;
    [this.width, this.shown] = [width, this.index];
    box.replaceChildren(draw(this.figure, this.index, width));
  }
}
