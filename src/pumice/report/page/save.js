// Figures as files: SVG that stands alone, and their numbers as CSV.
const variable = /var\((--[a-z0-9]+)\)/g;

// Files are for white paper, whatever the screen shows. The values are those of page.css in print.
function lightColours() {
  const colours = {};
  for (const sheet of document.styleSheets) {
    for (const rule of sheet.cssRules) {
      if (rule.selectorText !== ":root") continue;
      for (const name of rule.style) if (name.startsWith("--")) colours[name] = rule.style.getPropertyValue(name).trim();
    }
  }
  return colours;
}

export function standaloneSvg(svg) {
  const copy = svg.cloneNode(true);
  const [, , width, height] = copy.getAttribute("viewBox").split(" ");
  const ground = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  ground.setAttribute("width", width);
  ground.setAttribute("height", height);
  ground.setAttribute("fill", "var(--paper)");
  copy.prepend(ground);
  const colours = lightColours();
  return new XMLSerializer().serializeToString(copy).replace(variable, (whole, name) => colours[name] ?? whole);
}

// Quoted where needed. A text that a spreadsheet would take for a formula gets an apostrophe before it.
export function csv(table) {
  const cell = (value) => {
    if (value === null || value === undefined) return "";
    let text = String(value);
    if (typeof value === "string" && /^[=+\-@\t\r]/.test(text) && text !== "-infinite") text = `'${text}`;
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return [table.columns, ...table.rows].map((row) => row.map(cell).join(",")).join("\r\n") + "\r\n";
}

export function download(name, type, content) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([content], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
