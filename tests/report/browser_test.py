#!/usr/bin/python3
"""Opens reports of the stored records in a real browser (headless Chromium) and looks at what is there.

  tests/report/browser_test.py PUMICE [--screenshots DIR]

Fails if Chromium is not installed: a report that nobody has seen drawn is not tested.
"""
import argparse
import json
import math
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden"
sys.dont_write_bytecode = True  # no __pycache__ beside the sources
sys.path.insert(0, str(ROOT / "tools"))
from headless_chromium import Browser  # noqa: E402

FIGURES = "JSON.parse(document.getElementById('figures').textContent)"
# What is drawn of every drawing of every figure: each is chosen in turn, as a reader would.
DRAWN = """[...document.querySelectorAll('figure')].map((place) => {
  const select = place.querySelector('select');
  const drawings = select ? [...select.options].map((option) => option.value) : [null];
  return {id: place.id, drawings: drawings.map((value) => {
    if (value !== null) { select.value = value; select.dispatchEvent(new Event('change')); }
    const svg = place.querySelector('.drawing svg');
    const count = (name) => svg.querySelectorAll(name).length;
    const box = svg.getBoundingClientRect();
    const texts = [...svg.querySelectorAll('text')].filter((text) => text.textContent).map((text) => {
      const b = text.getBoundingClientRect();
      return {text: text.textContent, left: b.left - box.left, right: b.right - box.left, top: b.top, bottom: b.bottom};
    });
    return {marks: count('.mark'), series: count('.series'), points: count('.point'), paths: count('.path'),
            clouds: count('.cloud'), contours: count('.contour'), bands: count('.band'), levels: count('.level'),
            width: box.width, broken: /NaN|undefined|Infinity/.test(svg.outerHTML.replace(/<(text|title)[^>]*>.*?<\\/\\1>/g, '')),
            texts, notes: [...place.querySelectorAll('.notes li')].map((note) => note.textContent)};
  })};
})"""


def expected_marks(kind, data):
    """Counts of the classes that a drawing must hold."""
    if kind == "bars":
        return {"marks": len([bar for bar in data["bars"] if bar["value"] != "undefined"]),
                "bands": 1 if "band" in data else 0}
    if kind == "lines":
        return {"series": len(data["series"]), "marks": len(data["series"]), "levels": len(data.get("levels", []))}
    if kind == "plane":
        return {"marks": len(data.get("points", [])), "paths": len(data.get("paths", [])),
                "clouds": len(data.get("clouds", [])), "contours": 10 if "surface" in data else 0}
    return {"marks": sum(len(series["counts"]) for series in data["series"])}


def overlapping(texts):
    """Pairs of texts that lie on each other by more than two pixels both ways."""
    found = []
    for i, a in enumerate(texts):
        for b in texts[i + 1:]:
            across = min(a["right"], b["right"]) - max(a["left"], b["left"])
            down = min(a["bottom"], b["bottom"]) - max(a["top"], b["top"])
            if across > 2 and down > 2 + 0.25 * (a["bottom"] - a["top"]):
                found.append((a["text"], b["text"]))
    return found


class ReportInABrowser(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="pumice-report-")
        cls.pages = {}
        for name, records in [("experiment", ["experiment"]), ("request", ["forget", "audit"])]:
            cls.pages[name] = cls.report(name, [GOLDEN / f"{record}.json" for record in records])
        cls.browser = Browser()

    @classmethod
    def tearDownClass(cls):
        cls.browser.__exit__()
        cls.folder.cleanup()

    @classmethod
    def report(cls, name, records):
        page = pathlib.Path(cls.folder.name) / f"{name}.html"
        subprocess.run([OPTIONS.pumice, "report", *map(str, records), "--out", str(page)], check=True,
                       stdout=subprocess.DEVNULL)
        return page

    def open(self, page, width=1400, scheme="light"):
        self.browser.open(page, width, 1000, scheme)
        self.expect_silence(page)

    def expect_silence(self, page):
        """No exception, no word on the console, no request but the page's own."""
        for method in ["Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded",
                       "Page.javascriptDialogOpening"]:
            self.assertEqual(self.browser.seen(method), [])
        requests = [event["request"]["url"] for event in self.browser.seen("Network.requestWillBeSent")]
        self.assertEqual([url for url in requests if not url.startswith("data:")], [f"file://{page}"])

    def test_every_figure_is_drawn_and_readable_at_both_widths_light_and_dark(self):
        for name, page in self.pages.items():
            for width in [1400, 400]:
                for scheme in ["light", "dark"]:
                    with self.subTest(page=name, width=width, scheme=scheme):
                        self.open(page, width, scheme)
                        if OPTIONS.screenshots:
                            self.browser.screenshot(OPTIONS.screenshots / f"{name}-{width}-{scheme}.png")
                        self.assertLessEqual(self.browser.evaluate("document.documentElement.scrollWidth"), width)
                        self.look_at_figures()
                        self.expect_silence(page)

    def look_at_figures(self):
        figures = self.browser.evaluate(FIGURES)
        drawn = {figure["id"]: figure["drawings"] for figure in self.browser.evaluate(DRAWN)}
        self.assertEqual(sorted(drawn), sorted(figure["id"] for figure in figures))
        self.assertGreater(len(figures), 5)
        for figure in figures:
            self.assertEqual(len(drawn[figure["id"]]), len(figure["drawings"]))
            for wanted, seen in zip(figure["drawings"], drawn[figure["id"]]):
                with self.subTest(figure=figure["id"], drawing=wanted["name"]):
                    for name, count in expected_marks(figure["kind"], wanted["data"]).items():
                        self.assertEqual(seen[name], count, name)
                    self.assertFalse(seen["broken"])
                    self.assertEqual(seen["notes"], wanted["notes"])
                    self.assertEqual(overlapping(seen["texts"]), [])
                    outside = [text for text in seen["texts"] if text["left"] < -1 or text["right"] > seen["width"] + 1]
                    self.assertEqual(outside, [])

    def test_tables_equal_the_record(self):
        self.open(self.pages["experiment"])
        rows = self.browser.evaluate(
            "[...document.querySelectorAll('#part-1-readouts tr:not(.group)')].map((row) => "
            "[...row.cells].map((cell) => [cell.querySelector('.term')?.textContent ?? cell.firstChild.textContent, "
            "cell.querySelector('.signs')?.textContent ?? '']))")
        record = json.loads((GOLDEN / "experiment.json").read_text())
        columns = [cell[0] for cell in rows[0]]
        methods = [method["name"] for method in record["methods"]]
        self.assertEqual(columns, ["readout", *methods, "retrained"])
        compared = 0
        for row in rows[1:]:
            for method, (text, signs) in zip(methods, row[1:]):
                readouts = [readout for run in record["runs"] for readout in run["methods"][method]["audit"]["readouts"]
                            if readout["name"] == row[0][0]]
                self.assertEqual(len(readouts), 3)
                self.compare(text, readouts)
                for verdict in {readout["verdict"] for readout in readouts}:
                    count = [readout["verdict"] for readout in readouts].count(verdict)
                    self.assertIn(f"{verdict} {count}", signs)
                compared += 1
        self.assertEqual(compared, 70)

    def compare(self, text, readouts):
        values = [readout["value"] for readout in readouts]
        if "infinite" in values:
            self.assertEqual(text, "infinite")
            return
        factor = 100 if readouts[0]["unit"] == "share" else 1
        mean = factor * sum(values) / len(values)
        deviation = math.sqrt(sum((factor * value - mean) ** 2 for value in values) / (len(values) - 1))
        shown = re.fullmatch(r"(?:≥ )?([\d.]+) ± ([\d.]+)(?: %)?", text)
        self.assertTrue(shown, text)
        for number, value in zip(shown.groups(), [mean, deviation]):
            last_digit = 10.0 ** -len(number.partition(".")[2])
            self.assertLessEqual(abs(float(number) - value), 0.51 * last_digit, text)

    def test_definitions_come_with_mouse_keyboard_and_touch_and_go_with_escape(self):
        self.open(self.pages["experiment"], 400)
        box = "document.getElementById('definition')"
        term = "document.querySelector('#part-1-readouts tbody .term')"
        for come in ["focus()", "click()", "dispatchEvent(new Event('mouseenter'))"]:
            self.browser.evaluate(f"{term}.scrollIntoView({{behavior: 'instant', block: 'center'}})")
            self.browser.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
            self.browser.evaluate(f"{term}.{come}")
            self.assertEqual(self.browser.evaluate(f"{box}.hidden ? '' : {box}.textContent"),
                             "Share of the cohort that the model misclassifies.", come)
            self.assertLessEqual(self.browser.evaluate(f"{box}.getBoundingClientRect().right"), 400)
            self.browser.evaluate("document.dispatchEvent(new KeyboardEvent('keydown', {key: 'Escape'}))")
            self.assertTrue(self.browser.evaluate(f"{box}.hidden"))
            self.browser.evaluate(f"{term}.blur()")

    def test_numbers_of_a_figure_are_shown_and_saved(self):
        self.open(self.pages["experiment"])
        downloads = pathlib.Path(self.folder.name) / "downloads"
        downloads.mkdir()
        self.browser.send("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(downloads))
        place = "document.getElementById('part-1-readout-cohort_error')"
        for i in range(3):
            self.browser.evaluate(f"{place}.querySelectorAll('.tools button')[{i}].click()")
        wanted = [f"part-1-readout-cohort-error.{kind}" for kind in ["csv", "svg"]]
        self.browser.evaluate("new Promise((done) => setTimeout(done, 1000))")
        self.assertEqual(sorted(path.name for path in downloads.iterdir()), wanted)
        figure = next(f for f in self.browser.evaluate(FIGURES) if f["id"] == "part-1-readout-cohort_error")
        table = figure["drawings"][0]["table"]
        self.assertEqual(self.browser.evaluate(f"{place}.querySelectorAll('.tools tbody tr').length"), len(table["rows"]))
        lines = (downloads / wanted[0]).read_text().splitlines()
        self.assertEqual(lines[0], ",".join(table["columns"]))
        self.assertEqual(float(lines[5].split(",")[1]), table["rows"][4][1])

    def test_figures_are_exported_as_svg_that_stands_alone(self):
        folder = pathlib.Path(self.folder.name) / "svg"
        subprocess.run([str(ROOT / "tools" / "export-figures"), str(self.pages["experiment"]), str(folder)], check=True,
                       stdout=subprocess.DEVNULL)
        self.open(self.pages["experiment"])
        files = sorted(folder.iterdir())
        self.assertEqual(len(files), sum(len(figure["drawings"]) for figure in self.browser.evaluate(FIGURES)))
        for file in files:
            svg = file.read_text()
            self.assertTrue(xml.etree.ElementTree.fromstring(svg).tag.endswith("svg"))
            self.assertNotIn("var(--", svg)

    def test_exported_tables_are_those_of_the_page(self):
        exported = subprocess.run([str(ROOT / "tools" / "export-tables"), str(self.pages["experiment"]), "readouts"],
                                  check=True, capture_output=True, text=True).stdout
        lines = [line for line in exported.splitlines() if line.startswith("|")]
        self.open(self.pages["experiment"])
        rows = self.browser.evaluate(
            "[...document.querySelectorAll('#part-1-readouts tr')].map((row) => "
            "[...row.cells].map((cell) => cell.querySelector('.term')?.textContent ?? cell.firstChild.textContent))")
        self.assertEqual(len(lines), len(rows) + 1)  # and the line below the head
        for line, row in zip([lines[0], *lines[2:]], rows):
            for exported_cell, shown in zip(line.strip("| ").split(" | "), row):
                self.assertTrue(exported_cell.strip("* ").startswith(shown.strip()), (exported_cell, shown))

    def test_a_malicious_record_is_harmless(self):
        record = json.loads((GOLDEN / "experiment.json").read_text())
        evil = "</script><script>window.hacked = 1</script><img src=x onerror='window.hacked = 2'>"
        record["title"] = record["protocol"] = record["methods"][4]["label"] = evil
        for run in record["runs"]:
            run["methods"]["original"]["audit"]["readouts"][0]["definition"] = evil
        path = pathlib.Path(self.folder.name) / "evil.json"
        path.write_text(json.dumps(record))
        self.open(self.report("evil", [path]))
        self.assertEqual(self.browser.evaluate("[typeof window.hacked, document.querySelectorAll('img').length]"),
                         ["undefined", 0])
        self.assertEqual(self.browser.evaluate("document.querySelector('h1').textContent"), evil)
        self.assertGreater(self.browser.evaluate("document.querySelectorAll('figure svg').length"), 20)

    def test_it_prints(self):
        self.open(self.pages["request"], scheme="dark")
        path = pathlib.Path(self.folder.name) / "page.pdf"
        self.browser.pdf(path)
        self.assertTrue(path.read_bytes().startswith(b"%PDF"))
        # Paper is white even for a reader with a dark screen.
        self.browser.send("Emulation.setEmulatedMedia", media="print",
                          features=[{"name": "prefers-color-scheme", "value": "dark"}])
        self.assertEqual(self.browser.evaluate("getComputedStyle(document.body).backgroundColor"), "rgb(255, 255, 255)")
        self.browser.send("Emulation.setEmulatedMedia", media="")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pumice")
    parser.add_argument("--screenshots", type=pathlib.Path)
    OPTIONS, rest = parser.parse_known_args()
    if OPTIONS.screenshots:
        OPTIONS.screenshots.mkdir(parents=True, exist_ok=True)
    unittest.main(argv=[sys.argv[0], *rest], verbosity=1)
