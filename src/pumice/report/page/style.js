// A style is a colour, a marker and a dash: nobody needs the colour to tell two of them apart.
import {
  symbol, symbolCircle, symbolCross, symbolDiamond, symbolSquare, symbolStar, symbolTriangle, symbolWye,
} from "./d3.js";

const markers = [symbolCircle, symbolSquare, symbolTriangle, symbolDiamond, symbolCross, symbolCircle, symbolStar, symbolWye];
const dashes = [null, "7 3", "2 3", "12 4", "1 4", null, "9 3 2 3", "4 4"];

export const colour = (style) => `var(--s${style})`;
export const dash = (style) => dashes[style];
export const marker = (style, size = 48) => symbol().type(markers[style]).size(size)();
// Style 5 shares the circle of style 0; it is drawn hollow.
export const hollow = (style) => style === 5;

export function drawMarker(parent, style, x, y, size) {
  return parent.append("path")
    .attr("class", "mark")
    .attr("transform", `translate(${x},${y})`)
    .attr("d", marker(style, size))
    .attr("fill", hollow(style) ? "var(--paper)" : colour(style))
    .attr("stroke", colour(style))
    .attr("stroke-width", hollow(style) ? 2 : 0.5);
}
