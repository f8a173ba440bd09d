// Curves over a linear or logarithmic axis, with bands of deviation, levels (floors) and marks.
import { area, line } from "./d3.js";
import {
  bottomMargin, drawAxes, drawLegend, drawTopLabel, isFiniteNumber, leftMargin, makeScale, makeSvg, numberText,
} from "./frame.js";
import { colour, dash, drawMarker } from "./style.js";

const mostMarkers = 12;  // on one line, unless its points are the point

function pointsOf(series, data) {
  const showable = (value, axis) => isFiniteNumber(value) && (axis.scale !== "log" || value > 0);
  return series.x
    .map((x, i) => ({ x, y: series.y[i], low: series.low?.[i], high: series.high?.[i], label: series.labels?.[i] }))
    .filter((point) => showable(point.x, data.x) && showable(point.y, data.y));
}

function legendEntries(data) {
  const entries = data.series.map((each) => ({ name: each.name, style: each.style, line: true, marker: true }));
  if (data.levels?.length) entries.push({ name: "floor", line: true, colour: "var(--muted)", dash: "3 4" });
  return entries;
}

export function drawLines(data, width, label) {
  const height = data.square ? Math.min(width, 420) : Math.min(300, 0.75 * width);
  const draft = makeSvg(1, 1, "");
  const top = drawLegend(draft, legendEntries(data), 0, width) + 26;
  const all = data.series.flatMap((series) => pointsOf(series, data));
  const bottom = top + height - 60;
  const y = makeScale(data.y, [...all.flatMap((point) => [point.y, point.low, point.high]), ...(data.levels ?? []).map((level) => level.y)],
    [bottom, top]);
  const left = leftMargin(y, data.y, bottom - top);
  const right = data.square ? Math.min(width - 12, left + (bottom - top)) : width - 12;
  const x = makeScale(data.x, [...all.map((point) => point.x), ...(data.marks ?? [])], [left, right]);
  const svg = makeSvg(width, bottom + bottomMargin(data.x, right - left) + 6, label);
  drawLegend(svg, legendEntries(data), 0, width);
  drawTopLabel(svg, data.y, top - 12);
  drawAxes(svg, x, y, data.x, data.y, { left, right, top, bottom });

  for (const mark of data.marks ?? []) {
    svg.append("path").attr("d", `M${x(mark)},${top}V${bottom}`).attr("stroke", "var(--muted)").attr("stroke-dasharray", "1 3");
  }
  if (data.diagonal) {
    svg.append("path").attr("d", `M${x(0)},${y(0)}L${x(1)},${y(1)}`).attr("stroke", "var(--muted)").attr("stroke-dasharray", "1 3");
  }
  for (const level of data.levels ?? []) {
    svg.append("path").attr("class", "level").attr("d", `M${left},${y(level.y)}H${right}`)
      .attr("stroke", colour(level.style)).attr("stroke-width", 1.5).attr("stroke-dasharray", "3 4")
      .append("title").text(`${level.name}: ${numberText(level.y, data.y.unit)}`);
  }
  for (const series of data.series) drawSeries(svg, series, pointsOf(series, data), x, y, data);
  return svg.node();
}

function drawSeries(svg, series, points, x, y, data) {
  const group = svg.append("g").attr("class", "series");
  if (series.low) {
    const [low, high] = y.domain();
    const clamp = (value) => Math.max(low, Math.min(high, value));
    group.append("path").attr("fill", colour(series.style)).attr("fill-opacity", 0.13)
      .attr("d", area().x((p) => x(p.x)).y0((p) => y(clamp(p.low))).y1((p) => y(clamp(p.high)))(points));
  }
  group.append("path").attr("class", "mark").attr("fill", "none").attr("stroke", colour(series.style))
    .attr("stroke-width", 2).attr("stroke-dasharray", dash(series.style)).attr("stroke-linejoin", "round")
    .attr("d", line().x((p) => x(p.x)).y((p) => y(p.y))(points) ?? "M0,0");
  const step = data.points ? 1 : Math.ceil(points.length / mostMarkers);
  for (const point of points.filter((_, i) => i % step === 0)) {
    drawMarker(group, series.style, x(point.x), y(point.y), 36).attr("class", "point").append("title")
      .text(`${series.name}${point.label ? `, ${point.label}` : ""}: ${numberText(point.x, data.x.unit)}, ${numberText(point.y, data.y.unit)}`);
  }
}
