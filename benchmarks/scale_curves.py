#!/usr/bin/python3
"""Curves of docs/scale.md from what scale_benchmark wrote: time and memory against the number of examples.

  benchmarks/scale_curves.py docs/results/scale.json docs/results/scale      FOLDER/time.svg and FOLDER/memory.svg

Needs Debian's python3-matplotlib. Colours of Okabe and Ito, which colour-blind readers can tell apart.
"""
import json
import pathlib
import sys

import matplotlib

matplotlib.use("svg")
matplotlib.rcParams["svg.hashsalt"] = "pumice"  # the same bytes every time
import matplotlib.pyplot as plot  # noqa: E402

STYLES = {("matrix-free", "identity"): ("#0072B2", "o-"), ("matrix-free", "softmax"): ("#009E73", "s-"),
          ("dense", "identity"): ("#D55E00", "o--"), ("dense", "softmax"): ("#CC79A7", "s--")}


def curves(results, value):
    """{(solver, curvature): [(N, value), …]} of ResNet-18 at width 0.4."""
    found = {}
    for case in results["cases"].values():
        if case.get("width") != 0.4 or "solver" not in case:
            continue
        found.setdefault((case["solver"], case["curvature"]), []).append((case["examples"], value(case)))
    return {key: sorted(points) for key, points in sorted(found.items(), reverse=True)}


def draw(results, value, label, path):
    figure, axes = plot.subplots(figsize=(5.2, 3.6))
    counts = set()
    for key, points in curves(results, value).items():
        colour, style = STYLES[key]
        counts.update(n for n, _ in points)
        axes.loglog(*zip(*points), style, color=colour, label=", ".join(key))
    axes.set_xticks(sorted(counts), [f"{n:,}" for n in sorted(counts)])
    low, high = axes.get_ylim()
    steps = [m * 10.0**e for e in range(-2, 6) for m in (1, 2, 5)]
    axes.set_yticks([y for y in steps if low <= y <= high])
    axes.minorticks_off()
    axes.set_xlabel("training examples")
    axes.set_ylabel(label)
    axes.yaxis.set_major_formatter(lambda y, _: f"{y:g}")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, fontsize="small")
    figure.savefig(path, bbox_inches="tight", metadata={"Date": None})


def main(source, folder):
    results = json.loads(pathlib.Path(source).read_text())
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    draw(results, lambda case: case["seconds"], "seconds of a request", folder / "time.svg")
    draw(results, lambda case: case["bytes"] / 2**30, "memory, GiB", folder / "memory.svg")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
