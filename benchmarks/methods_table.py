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


def cell(values, percent=False):
    values = [value * (100 if percent else 1) for value in values]
    form = "{:.1f}" if percent else "{:.3f}"
    text = form.format(statistics.mean(values))
    return text + (" ± " + form.format(statistics.stdev(values)) if len(values) > 1 else "")


def print_overview(table):
    """L1 on the cohort: a row for each idea, a column for each network and size of cohort."""
    settings = sorted(table)
    ideas = []
    for setting in settings:
        ideas += [idea for idea in table[setting] if idea not in ideas]
    print("| L1 on the cohort | " + " | ".join(
        f"{network} {cohort} ({len(table[network, cohort]['original'])} seeds)" for network, cohort in settings) + " |")
    print("|---" * (len(settings) + 1) + "|")
    for idea in ideas:
        print(f"| {idea} | " + " | ".join(
            cell([run["l1_cohort"] for run in table[setting][idea]]) if idea in table[setting] else ""
            for setting in settings) + " |")


def print_details(table, ideas):
    for (network, cohort), found in sorted(table.items()):
        print(f"\n{network}, cohort of {cohort}:\n")
        print("| | " + " | ".join(title for _, title in COLUMNS) + " |")
        print("|---" * (len(COLUMNS) + 1) + "|")
        for idea in ideas:
            if idea not in found:
                continue
            cells = []
            for key, title in COLUMNS:
                values = [run[key] for run in found[idea] if key in run]
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
        print_overview(table)
        print_details(table, ["original", "ntk, trapezium", "identity, margin rule", "identity, capped undershoot",
                              "floor: two retrained models"])


if __name__ == "__main__":
    main()
