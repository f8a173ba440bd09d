// One row of columns for each set of examples over a common axis, as shares of the set: sets differ in size.
import { axisBottom, scaleLinear } from "./d3.js";
import { addText, bottomMargin, makeSvg, numberText } from "./frame.js";
import { colour } from "./style.js";

const rowHeight = 92, labelHeight = 26, left = 4;

export function drawHistogram(data, width, label) {
  const right = width - 12;
  const bottom = data.series.length * rowHeight;
  const svg = makeSvg(width, bottom + bottomMargin(data.x, right - left) + 6, label);
  const x = scaleLinear([data.edges[0], data.edges.at(-1)], [left, right]);
  data.series.forEach((series, row) => {
    const total = series.counts.reduce((sum, count) => sum + count, 0) || 1;
    const foot = (row + 1) * rowHeight;
    const most = Math.max(...series.counts) / total || 1;
    const y = scaleLinear([0, most], [foot, foot - rowHeight + labelHeight]);
    series.counts.forEach((count, i) => {
      svg.append("rect").attr("class", "mark").attr("x", x(data.edges[i]) + 0.75).attr("y", y(count / total))
        .attr("width", Math.max(0.5, x(data.edges[i + 1]) - x(data.edges[i]) - 1.5)).attr("height", foot - y(count / total))
        .attr("fill", colour(series.style)).attr("fill-opacity", 0.8)
        .append("title").text(`${series.name}, ${numberText(data.edges[i])} … ${numberText(data.edges[i + 1])}: ${count} of ${total}`);
    });
    svg.append("path").attr("d", `M${left},${foot}H${right}`).attr("stroke", "var(--rule)");
    addText(svg, left, foot - rowHeight + 18, series.name).attr("font-weight", 600);
    addText(svg, right, foot - rowHeight + 18, `${total} examples, highest column ${numberText(most, "share")}`, "end", "var(--muted)");
  });
  const axis = svg.append("g").attr("transform", `translate(0,${bottom})`)
    .call(axisBottom(x).ticks(Math.max(3, Math.floor(width / 90))).tickFormat((tick) => numberText(tick)).tickSizeOuter(0));
  axis.attr("font-family", null).attr("font-size", null).select(".domain").remove();
  axis.selectAll("line").attr("stroke", "var(--rule)");
  axis.selectAll("text").attr("fill", "var(--muted)");
  addText(svg, (left + right) / 2, bottom + 36, data.x.label, "middle", "var(--muted)");
  return svg.node();
}
