// Horizontal bars, one for each model, with whiskers and the band of the retrained models in green. Horizontal, since
// names fit beside them at any width. Bounds that span decades are points on a log axis: a bar has no foot there.
import { axisBottom } from "./d3.js";
import { addText, isFiniteNumber, makeScale, makeSvg, numberText, textWidth } from "./frame.js";
import { colour, drawMarker } from "./style.js";

const row = 28;

function axisOf(data) {
  const values = data.bars.map((bar) => bar.value).filter(isFiniteNumber);
  const positive = values.length > 1 && values.every((value) => value > 0);
  const wide = positive && Math.max(...values) / Math.min(...values) > 30;
  return wide && data.unit === "nats" ? { scale: "log", unit: data.unit } : { zero: true, unit: data.unit };
}

export function drawBars(data, width, label) {
  const axis = axisOf(data);
  const left = Math.min(0.36 * width, Math.max(...data.bars.map((bar) => textWidth(bar.label))) + 12);
  const right = width - Math.min(0.38 * width, Math.max(...data.bars.map((bar) => textWidth(bar.text))) + 14);
  const bottom = data.bars.length * row + 6;
  const svg = makeSvg(width, bottom + 30, label);
  const extremes = data.bars.flatMap((bar) => [bar.value, ...(bar.error ?? [])]);
  const x = makeScale(axis, [...extremes, data.band?.low, data.band?.high], [left, right]);
  const inside = (value) => Math.max(left, Math.min(right, x(value)));

  const ticks = Math.max(2, Math.floor((right - left) / 70));
  const powers = x.ticks(ticks).filter((tick) => axis.scale !== "log" || Math.log10(tick) % 1 === 0);
  const shown = powers.filter((tick, i) => i % Math.ceil(powers.length / ticks) === 0);
  const axisGroup = svg.append("g").attr("transform", `translate(0,${bottom})`)
    .call(axisBottom(x).tickValues(shown).tickFormat((tick) => numberText(tick, axis.unit)).tickSize(-bottom).tickPadding(8));
  axisGroup.attr("font-family", null).attr("font-size", null).select(".domain").remove();
  axisGroup.selectAll("line").attr("stroke", "var(--rule)");
  axisGroup.selectAll("text").attr("fill", "var(--muted)");

  if (isFiniteNumber(data.band?.low) && isFiniteNumber(data.band?.high)) {
    const from = axis.scale === "log" && data.band.low <= 0 ? left : inside(data.band.low);
    svg.append("rect").attr("class", "band").attr("x", from).attr("y", 0)
      .attr("width", Math.max(2, inside(data.band.high) - from)).attr("height", bottom)
      .attr("fill", "var(--s3)").attr("fill-opacity", 0.25);
  }
  data.bars.forEach((bar, i) => drawBar(svg, bar, i * row + row / 2 + 3, { x, inside, left, right, log: axis.scale === "log" }));
  return svg.node();
}

function drawBar(svg, bar, y, { inside, left, right, log }) {
  addText(svg, left - 10, y + 4, shortened(bar.label, left - 12), "end").append("title").text(bar.label);
  if (bar.value === "infinite") {
    // An open end: the arrow leaves the axis.
    const stroke = (path) => path.attr("fill", "none").attr("stroke", colour(bar.style)).attr("stroke-width", 2);
    stroke(svg.append("path").attr("class", "mark").attr("d", `M${left},${y}H${right - 4}`)).attr("stroke-dasharray", "5 3");
    stroke(svg.append("path").attr("d", `M${right - 9},${y - 5}l7,5l-7,5`));
  } else if (log) {
    // Its marker is drawn last, over the whisker.
  } else if (isFiniteNumber(bar.value)) {
    const [a, b] = [inside(0), inside(bar.value)].sort((p, q) => p - q);
    svg.append("rect").attr("class", "mark").attr("x", a).attr("y", y - 8).attr("width", Math.max(1.5, b - a))
      .attr("height", 16).attr("fill", colour(bar.style)).attr("fill-opacity", 0.85).attr("rx", 1.5);
  }
  if (bar.error && isFiniteNumber(bar.error[0]) && isFiniteNumber(bar.error[1]) && bar.error[0] < bar.error[1]) {
    const [low, high] = bar.error.map((value) => (log && value <= 0 ? left : inside(value)));
    svg.append("path").attr("d", `M${low},${y - 4}v8m0,-4H${high}m0,-4v8`)
      .attr("fill", "none").attr("stroke", "var(--paper)").attr("stroke-width", 4).attr("stroke-opacity", 0.7);
    svg.append("path").attr("class", "whisker").attr("d", `M${low},${y - 4}v8m0,-4H${high}m0,-4v8`)
      .attr("fill", "none").attr("stroke", "var(--ink)").attr("stroke-width", 1.3);
  }
  if (log && isFiniteNumber(bar.value)) drawMarker(svg, bar.style, inside(bar.value), y, 80);
  addText(svg, right + 12, y + 4, bar.text);
}

function shortened(text, width) {
  if (textWidth(text) <= width) return text;
  let short = text;
  while (short.length > 1 && textWidth(`${short}…`) > width) short = short.slice(0, -1);
  return `${short}…`;
}
