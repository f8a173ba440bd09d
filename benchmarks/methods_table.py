#!/usr/bin/python3
"""Tables of docs/results/methods.md from what methods_study wrote.

  benchmarks/methods_table.py RESULT.json...            markdown on standard output
  benchmarks/methods_table.py --compact RESULT.json...  all numbers as one small JSON

Every number is a mean over the seeds of one network and cohort size; ± is the standard deviation over seeds.
"""
import json
import statistics
import sys

COLUMNS = [("l1_cohort", "L1 cohort"), ("l1_retain", "L1 retained"), ("l1_test", "L1 test"),
           ("error_cohort", "error cohort %"), ("error_test", "error test %"), ("loss_cohort", "loss cohort"),
           ("cosine", "cosine"), ("norm_ratio", "norm ratio"), ("scale", "scale")]


def load(files):
    """{(network, cohort): {idea: [one dict a seed]}}"""
    table = {}
    for name in files:
        result = json.load(open(name))
        network = result["folder"].split("-")[0]
        for cohort, study in result["cohorts"].items():
            ideas = table.setdefault((network, int(cohort)), {})
            floor = study["floor"]
            between = {key: floor[key] for key in ("l1_cohort", "l1_retain", "l1_test")}
            for key in ("error_cohort", "error_test", "loss_cohort", "norm_ratio", "cosine"):
                between[key] = (floor["a"][key] + floor["b"][key]) / 2
            ideas.setdefault("floor: two retrained models", []).append(between)
            for idea, numbers in study["ideas"].items():
                ideas.setdefault(idea, []).append(numbers)
    return table


def cell(values, percent):
    factor = 100 if percent else 1
    values = [value * factor for value in values]
    form = "{:.1f}" if percent else "{:.3f}" if abs(values[0]) < 10 else "{:.1f}"
    text = form.format(statistics.mean(values))
    if len(values) > 1:
        text += " ± " + form.format(statistics.stdev(values))
    return text


def print_tables(table, ideas=None):
    for (network, cohort), found in sorted(table.items()):
        seeds = len(found["floor: two retrained models"])
        print(f"\n**{network}, cohort of {cohort}, {seeds} seed{'s' if seeds > 1 else ''}**\n")
        print("| | " + " | ".join(title for _, title in COLUMNS) + " |")
        print("|---" * (len(COLUMNS) + 1) + "|")
        for idea, runs in found.items():
            if ideas and idea not in ideas:
                continue
            cells = []
            for key, title in COLUMNS:
                values = [run[key] for run in runs if key in run]
                cells.append(cell(values, "%" in title) if values else "")
            print(f"| {idea} | " + " | ".join(cells) + " |")


def main():
    compact = sys.argv[1:2] == ["--compact"]
    table = load(sys.argv[2:] if compact else sys.argv[1:])
    if compact:
        rounded = {f"{network}, cohort of {cohort}": {
            idea: {key: [round(run[key], 4) for run in runs if key in run] for key, _ in COLUMNS
                   if any(key in run for run in runs)} for idea, runs in ideas.items()}
            for (network, cohort), ideas in sorted(table.items())}
        print(json.dumps(rounded, indent=0))
    else:
        print_tables(table)


if __name__ == "__main__":
    main()
