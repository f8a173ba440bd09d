// Everything is decided in the view model; this only draws it.
import { watchTerms } from "./definitions.js";
import { draw, fileName, FigureOnPage } from "./figure.js";
import { standaloneSvg } from "./save.js";

const figures = JSON.parse(document.getElementById("figures").textContent);
const shown = figures.map((figure) => new FigureOnPage(figure, document.getElementById(figure.id)));
watchTerms();

let waiting = 0;
window.addEventListener("resize", () => {
  cancelAnimationFrame(waiting);
  waiting = requestAnimationFrame(() => shown.forEach((each) => each.redraw()));
});

// On paper two figures stand side by side: drawn at that width, their texts keep the size of the others.
const paperWidth = 360;
window.addEventListener("beforeprint", () => shown.forEach((each) => each.redraw(paperWidth)));
window.addEventListener("afterprint", () => shown.forEach((each) => each.redraw()));

// For tools/export-figures: every drawing of every figure, at one width.
window.pumice = {
  exportFigures: (width) => figures.flatMap((figure) => figure.drawings.map((_, index) => ({
    name: fileName(figure, index), svg: standaloneSvg(draw(figure, index, width)),
  }))),
};
document.documentElement.dataset.drawn = String(shown.length);
