// What figures with two axes share: size, legend, axes, numbers.
import { axisBottom, axisLeft, create, format, scaleLinear, scaleLog } from "./d3.js";
import { colour, dash, drawMarker } from "./style.js";

export const fontSize = 12;
const fontFamily = 'system-ui, "Segoe UI", "Noto Sans", "DejaVu Sans", sans-serif';
const measure = document.createElement("canvas").getContext("2d");

export function textWidth(text) {
  measure.font = `${fontSize}px ${fontFamily}`;
  return measure.measureText(text).width;
}

export const isFiniteNumber = (value) => typeof value === "number" && Number.isFinite(value);

const plain = format(".3~r");
export function numberText(value, unit) {
  if (!isFiniteNumber(value)) return String(value ?? "");
  if (unit === "share") return `${plain(100 * value)} %`;
  const size = Math.abs(value);
  return size !== 0 && (size >= 1e5 || size < 1e-3) ? format(".2~e")(value).replace("e+", "e") : plain(value);
}

export function makeSvg(width, height, label) {
  return create("svg")
    .attr("xmlns", "http://www.w3.org/2000/svg")
    .attr("viewBox", `0 0 ${width} ${height}`)
    .attr("width", width)
    .attr("height", height)
    .attr("role", "img")
    .attr("aria-label", label)
    .attr("font-family", fontFamily)
    .attr("font-size", fontSize)
    .attr("fill", "var(--ink)");
}

export function addText(parent, x, y, text, anchor = "start", fill = "var(--ink)") {
  return parent.append("text").attr("x", x).attr("y", y).attr("text-anchor", anchor).attr("fill", fill).text(text);
}

// Lines of at most `width`; a word is never cut.
export function wrapped(text, width) {
  const lines = [""];
  for (const word of text.split(" ")) {
    const longer = lines.at(-1) ? `${lines.at(-1)} ${word}` : word;
    if (textWidth(longer) <= width || !lines.at(-1)) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines;
}

// Entries {name, style, line, marker, dash} in as many rows as they need, from the top. Returns the height used.
export function drawLegend(svg, entries, left, width) {
  const sample = 26, gap = 16, row = 20;
  let x = left, y = 10;
  const legend = svg.append("g").attr("class", "legend");
  for (const entry of entries) {
    const needed = sample + textWidth(entry.name) + gap;
    if (x > left && x + needed - gap > left + width) {
      x = left;
      y += row;
    }
    if (entry.line) {
      legend.append("path")
        .attr("d", `M${x},${y}h20`)
        .attr("stroke", entry.colour ?? colour(entry.style))
        .attr("stroke-width", 2)
        .attr("stroke-dasharray", entry.dash ?? dash(entry.style))
        .attr("fill", "none");
    }
    if (entry.marker) drawMarker(legend, entry.style, x + 10, y).attr("class", null);
    addText(legend, x + sample, y + 4, entry.name);
    x += needed;
  }
  return entries.length ? y + 16 : 0;
}

// A scale for axis {label, scale, from, to, zero, unit} over values that can be shown on it.
export function makeScale(axis, values, range) {
  const shown = values.filter((value) => isFiniteNumber(value) && (axis.scale !== "log" || value > 0));
  let low = Math.min(...shown), high = Math.max(...shown);
  if (!shown.length) [low, high] = axis.scale === "log" ? [1, 10] : [0, 1];
  if (axis.scale === "log") {
    if (low === high) [low, high] = [low / 2, high * 2];
    const room = (high / low) ** 0.05;
    return scaleLog([low / room, high * room], range);
  }
  if (axis.zero) low = Math.min(0, low);
  if (low === high) high = low + 1;
  const room = 0.06 * (high - low);
  return scaleLinear([axis.from ?? (axis.zero && low === 0 ? 0 : low - room), axis.to ?? high + room], range);
}

function styleAxis(group) {
  group.attr("font-family", null).attr("font-size", null);
  group.selectAll("line, path").attr("stroke", "var(--rule)");
  group.selectAll("text").attr("fill", "var(--muted)");
}

// Ticks that leave room for their texts; a log axis labels powers of ten, or its ends if there are too few.
function ticksOf(scale, axis, length, room) {
  const count = Math.max(2, Math.floor(length / room));
  if (axis.scale !== "log") return scale.ticks(count);
  const [low, high] = scale.domain();
  const powers = [];
  for (let power = Math.ceil(Math.log10(low)); power <= Math.floor(Math.log10(high)); ++power) powers.push(10 ** power);
  if (powers.length < 2) {
    const all = scale.ticks();
    const step = Math.ceil(all.length / count);
    return all.filter((tick, i) => i % step === 0);
  }
  const step = Math.ceil(powers.length / count);
  return powers.filter((power, i) => i % step === 0);
}

export function drawAxes(svg, x, y, axisX, axisY, box) {
  const text = (axis) => (value) => numberText(value, axis.unit);
  const ticksX = ticksOf(x, axisX, box.right - box.left, 64);
  const ticksY = ticksOf(y, axisY, box.bottom - box.top, 40);
  const across = svg.append("g").attr("transform", `translate(0,${box.bottom})`)
    .call(axisBottom(x).tickValues(ticksX).tickFormat(text(axisX)).tickSizeOuter(0));
  const up = svg.append("g").attr("transform", `translate(${box.left},0)`)
    .call(axisLeft(y).tickValues(ticksY).tickFormat(text(axisY)).tickSize(-(box.right - box.left)).tickPadding(8));
  up.select(".domain").remove();
  styleAxis(across);
  styleAxis(up);
  wrapped(axisX.label ?? "", box.right - box.left).forEach((words, i) =>
    addText(svg, (box.left + box.right) / 2, box.bottom + 36 + 15 * i, words, "middle", "var(--muted)"));
}

// Room for the widest text on the left axis.
export function leftMargin(scale, axis, length) {
  return 14 + Math.max(...ticksOf(scale, axis, length, 40).map((tick) => textWidth(numberText(tick, axis.unit))));
}

// The label of the left axis stands above it, where it can be read without turning the head.
export function drawTopLabel(svg, axis, y) {
  if (axis.label) addText(svg, 0, y, axis.label, "start", "var(--muted)");
}

export function bottomMargin(axis, width) {
  return 30 + 15 * (axis.label ? wrapped(axis.label, width).length : 0);
}
