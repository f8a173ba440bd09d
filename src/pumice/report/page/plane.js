// Pictures of weight space: paths, points, noise as ellipses, a surface as contours.
import { contours, line } from "./d3.js";
import { addText, bottomMargin, drawAxes, drawLegend, drawTopLabel, leftMargin, makeScale, makeSvg, numberText, wrapped } from "./frame.js";
import { colour, dash, drawMarker } from "./style.js";

const deviations = 2;  // of a noise ellipse
const levels = 10;     // of a surface

function legendEntries(data) {
  return [
    ...(data.paths ?? []).filter((path) => path.name).map((path) => ({ name: path.name, style: path.style, line: true })),
    ...(data.points ?? []).map((point) => ({ name: point.name, style: point.style, marker: true })),
  ];
}

// What must be inside the picture, as [x, y].
function corners(data) {
  if (data.near) {
    const points = data.points.filter((point) => point.name !== "w0");
    const xs = points.map((point) => point.x), ys = points.map((point) => point.y);
    const room = 0.5 * Math.max(Math.max(...xs) - Math.min(...xs), Math.max(...ys) - Math.min(...ys), 1e-9);
    return [[Math.min(...xs) - room, Math.min(...ys) - room], [Math.max(...xs) + room, Math.max(...ys) + room]];
  }
  const all = (data.points ?? []).map((point) => [point.x, point.y]);
  for (const path of data.paths ?? []) all.push(...path.points);
  for (const cloud of data.clouds ?? []) {
    const [dx, dy] = [deviations * Math.sqrt(cloud.covariance[0]), deviations * Math.sqrt(cloud.covariance[2])];
    all.push([cloud.x - dx, cloud.y - dy], [cloud.x + dx, cloud.y + dy]);
  }
  return all;
}

// Height that the content asks for at equal units, within reason.
function heightFor(data, inside, width) {
  if (!data.equal) return Math.min(0.8 * width, 380);
  const extent = (index) => Math.max(...inside.map((point) => point[index])) - Math.min(...inside.map((point) => point[index]));
  return Math.min(Math.max(0.42 * width, 1.15 * width * (extent(1) / (extent(0) || 1))), 0.8 * width, 400);
}

// One unit is as long on both axes: the narrower domain is widened around its middle.
function equalise(x, y) {
  const perPixel = (scale) => Math.abs((scale.domain()[1] - scale.domain()[0]) / (scale.range()[1] - scale.range()[0]));
  const [small, large] = perPixel(x) < perPixel(y) ? [x, y] : [y, x];
  const factor = perPixel(large) / perPixel(small);
  const [low, high] = small.domain(), middle = (low + high) / 2;
  small.domain([middle - factor * (middle - low), middle + factor * (high - middle)]);
}

function ellipsePath(cloud, x, y) {
  const [xx, xy, yy] = cloud.covariance;
  // Cholesky of the covariance maps the circle to the ellipse.
  const a = Math.sqrt(xx), b = a > 0 ? xy / a : 0, c = Math.sqrt(Math.max(0, yy - b * b));
  const points = Array.from({ length: 73 }, (_, i) => {
    const angle = (2 * Math.PI * i) / 72;
    return [x(cloud.x + deviations * a * Math.cos(angle)), y(cloud.y + deviations * (b * Math.cos(angle) + c * Math.sin(angle)))];
  });
  return `${line()(points)}Z`;
}

function surfaceLevels(surface) {
  const values = surface.z.flat().filter(Number.isFinite);
  const low = Math.min(...values), high = Math.max(...values);
  const shift = low > 0 ? 0 : -low + 1e-3 * (high - low || 1);
  const first = low + shift, last = high + shift;
  return Array.from({ length: levels }, (_, i) => first * (last / first) ** ((i + 1) / (levels + 1)) - shift);
}

function drawSurface(group, surface, x, y) {
  const at = (list, index) => list[0] + (index - 0.5) * ((list.at(-1) - list[0]) / (list.length - 1));
  const shapes = contours().size([surface.x.length, surface.y.length]).thresholds(surfaceLevels(surface))(surface.z.flat());
  for (const shape of shapes) {
    const rings = shape.coordinates.flat().map((ring) => `${line()(ring.map(([i, j]) => [x(at(surface.x, i)), y(at(surface.y, j))]))}Z`);
    group.append("path").attr("class", "contour").attr("d", rings.join("")).attr("fill-rule", "evenodd")
      .attr("fill", "var(--s5)").attr("fill-opacity", 0.09).attr("stroke", "var(--s5)").attr("stroke-opacity", 0.55)
      .attr("stroke-width", 0.8).append("title").text(`${surface.label} ${numberText(shape.value)}`);
  }
}

export function drawPlane(data, width, label, id) {
  const draft = makeSvg(1, 1, "");
  const top = drawLegend(draft, legendEntries(data), 0, width) + 26;
  const inside = corners(data);
  const bottom = top + heightFor(data, inside, width);
  const xs = data.surface ? data.surface.x : inside.map((point) => point[0]);
  const ys = data.surface ? data.surface.y : inside.map((point) => point[1]);
  let y = makeScale(data.y, ys, [bottom, top]);
  if (data.surface) y = y.domain([ys[0], ys.at(-1)]);
  const left = Math.max(46, leftMargin(y, data.y, bottom - top)), right = width - 12;
  let x = makeScale(data.x, xs, [left, right]);
  if (data.surface) x = x.domain([xs[0], xs.at(-1)]);
  if (data.equal) equalise(x, y);

  const note = data.surface
    ? wrapped(`levels of the ${data.surface.label}: ${surfaceLevels(data.surface).map((level) => numberText(Number(level.toPrecision(2)))).join(", ")}`, width)
    : [];
  const axisHeight = bottomMargin(data.x, right - left);
  const svg = makeSvg(width, bottom + axisHeight + 6 + (note.length ? 8 : 0) + 16 * note.length, label);
  drawLegend(svg, legendEntries(data), 0, width);
  drawTopLabel(svg, data.y, top - 12);
  drawAxes(svg, x, y, data.x, data.y, { left, right, top, bottom });
  note.forEach((words, i) => addText(svg, 0, bottom + axisHeight + 14 + 16 * i, words, "start", "var(--muted)"));

  const clip = `clip-${id}`;
  svg.append("clipPath").attr("id", clip).append("rect").attr("x", left).attr("y", top).attr("width", right - left).attr("height", bottom - top);
  const inner = svg.append("g").attr("clip-path", `url(#${clip})`);
  if (data.surface) drawSurface(inner, data.surface, x, y);
  for (const cloud of data.clouds ?? []) {
    inner.append("path").attr("class", "cloud").attr("d", ellipsePath(cloud, x, y)).attr("fill", colour(cloud.style)).attr("fill-opacity", 0.15)
      .attr("stroke", colour(cloud.style)).attr("stroke-width", 1).append("title").text(`noise of ${cloud.name}`);
  }
  for (const path of data.paths ?? []) {
    inner.append("path").attr("class", "path").attr("d", line().x((p) => x(p[0])).y((p) => y(p[1]))(path.points)).attr("fill", "none")
      .attr("stroke", colour(path.style)).attr("stroke-width", 2).attr("stroke-dasharray", dash(path.style)).attr("stroke-linejoin", "round");
  }
  for (const point of data.points ?? []) {
    drawMarker(inner, point.style, x(point.x), y(point.y), 80).append("title").text(point.name);
  }
  return svg.node();
}
