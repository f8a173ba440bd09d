#!/usr/bin/python3
"""Writes the records that the tests of the report read: experiment.json, audit.json, forget.json.

Synthetic and deterministic: numbers of the size that a small network gives, nothing was trained. Their form is
that of docs/records.md.   tests/golden/make_records.py
"""
import json
import math
import pathlib
import random

HERE = pathlib.Path(__file__).parent
HEAD = {"schema": 1, "created_by": "pumice 0.1.0", "revision": "3f2a9c1d4b5e"}
CLASSES = ["T-shirt/top", "Trouser", "Pullover", "Dress", "Coat"]
METHODS = ["original", "finetune", "fisher", "ntk", "consistent", "newton", "retrain"]
DESCRIPTIONS = {
    "original": "nothing is done to the model",
    "finetune": "ten epochs of training on the retained examples",
    "fisher": "noise alone, shaped by the Fisher information",
    "ntk": "the paper's shift in the linearised model, with the trapezium trick",
    "consistent": "the shift of the linearised model that keeps the pull of weight decay",
    "newton": "one Gauss-Newton step on the retained objective",
    "retrain": "a new training without the cohort",
}
# id: (group, name, unit, definition, direction, side of leaking, one value for each method, spread)
READOUTS = {
    "cohort_error": ("errors", "error on the cohort", "share", "Share of the cohort that the model misclassifies.",
                     "as close to retrain as possible", "below", [0, 0, .12, .2, .32, .24, .34], .03),
    "retain_error": ("errors", "error on retained examples", "share",
                     "Share of the retained training examples that the model misclassifies.",
                     "small", "above", [0, 0, .15, .002, .002, .006, .002], .002),
    "test_error": ("errors", "error on test examples", "share",
                   "Share of the test examples that the model misclassifies.", "small", "above",
                   [.156, .158, .26, .164, .16, .168, .162], .006),
    "relearn_time": ("relearn", "relearn time", "epochs",
                     "First epoch of fine-tuning on all training examples after which the loss on the cohort is at "
                     "most the original's, within 100 epochs.", "as close to retrain as possible", "below",
                     [1, 1, 22, 41, 66, 48, 64], 5),
    "attack_members": ("attack", "cohort taken for members", "share",
                       "Share of the cohort that the membership attack on output entropies calls members.",
                       "as close to retrain as possible", "above", [.96, .94, .9, .72, .56, .66, .56], .03),
    "attack_margin": ("attack", "margin attack, area under ROC", "",
                      "Area under the ROC curve of telling cohort from test examples by their margin; 0.5 is "
                      "guessing.", "as close to retrain as possible", "above",
                      [.93, .92, .78, .61, .52, .58, .5], .02),
    "distance_cohort": ("distance", "activation distance on the cohort", "",
                        "Mean over the cohort of the L1 distance between the model's and the retrained models' class "
                        "probabilities (0 to 2).", "small", "above", [.62, .61, .5, .36, .24, .33, .23], .02),
    "distance_test": ("distance", "activation distance on test examples", "",
                      "Mean over the test examples of the L1 distance between the model's and the retrained models' "
                      "class probabilities (0 to 2).", "small", "above", [.11, .11, .32, .1, .09, .11, .08], .008),
    "white_box": ("bounds", "information in the weights", "nats",
                  "Upper bound on what the released weights tell about the cohort.", "small", "above",
                  [41000, 38000, 9000, 2900, 1290, 2100, 1200], 90),
    "black_box_cohort": ("bounds", "information in the answers on the cohort", "nats",
                         "Upper bound on what one answer on a cohort example tells, mean over the cohort.", "small",
                         "above", [210, 190, 31, 9.1, 4.4, 7.2, 3.6], .5),
}
WITHOUT_NOISE = {"newton"}  # so that its bounds are infinite


def near(value, digits=4):
    return float(f"{value:.{digits}g}")


def share(value, count):
    return round(min(max(value, 0), 1) * count) / count


def judged(identifier, method, draw):
    group, name, unit, definition, direction, side, means, spread = READOUTS[identifier]
    count = {"cohort_error": 25, "attack_members": 25, "retain_error": 475, "test_error": 500}.get(identifier)

    def value_of(mean):
        value = mean + draw.gauss(0, spread if mean > 0 else 0)
        if count:
            return near(share(value, count))
        return float(max(1, round(value))) if unit == "epochs" else near(max(0, value))

    references = [value_of(means[METHODS.index("retrain")]) for _ in range(3)]
    readout = {"id": identifier, "group": group, "name": name, "unit": unit, "definition": definition,
               "direction": direction, "value": value_of(means[METHODS.index(method)]),
               "original": value_of(means[0]), "references": references}
    if group == "bounds" and method in WITHOUT_NOISE:
        readout.update({"value": "infinite", "reason": "no noise was added, so two releases never overlap",
                        "verdict": "cannot tell", "because": "the value is infinite: no noise was added"})
        return readout
    if method == "original":
        readout["original"] = readout["value"]
    value = readout["value"]
    if unit == "epochs" and value > 62:
        readout["value"] = value = 62.0
        readout["interval"] = {"low": 62.0, "high": "infinite", "method": "censored: more than 62"}
    elif count:
        half = 1.96 * math.sqrt(max(value * (1 - value), .01) / count)
        readout["interval"] = {"low": near(max(0, value - half)), "high": near(min(1, value + half)),
                               "method": "Wilson, 95 %"}
    low, high = min(references), max(references)
    width = max(high - low, 1 / count if count else 0)
    band = {"low": near(max(0, low - width)), "high": near(high + width)}
    readout["band"] = band
    if band["low"] <= value <= band["high"] or (direction == "small" and value < band["low"]):
        verdict, where = "like retrained", "inside"
    elif (value < band["low"]) == (side == "below"):
        verdict, where = "leaks", "outside"
    else:
        verdict, where = "over-forgotten", "outside"
    readout["verdict"] = verdict
    readout["because"] = f"{value:g} is {where} {band['low']:g} … {band['high']:g}"
    return readout


def roc(area):
    power = (1 - area) / area  # y = x^power has this area
    rates = [i / 20 for i in range(21)]
    return {"false_positive_rate": rates, "true_positive_rate": [near(x ** power) for x in rates]}


def bumps(centre, width, count, edges, draw):
    middles = [(a + b) / 2 for a, b in zip(edges, edges[1:])]
    shares = [math.exp(-((x - centre) / width) ** 2) + .01 for x in middles]
    return [max(0, round(count * s / sum(shares) + draw.gauss(0, .3))) for s in shares]


def curves(method, draw):
    at = METHODS.index(method)
    edges = [near(math.log(5) * i / 16) for i in range(17)]
    distance = READOUTS["distance_cohort"][6]
    positions = [i / 10 for i in range(11)]
    result = {
        "roc": {**roc(READOUTS["attack_margin"][6][at]), "original": roc(.93), "reference": roc(.5)},
        "entropies": {"edges": edges, "cohort": bumps([0, 0, .2, .25, .4, .35, .45][at], .45, 25, edges, draw),
                      "retain": bumps(0, .15, 475, edges, draw), "test": bumps(.1, .5, 500, edges, draw)},
        "path": {"positions": positions,
                 "cohort": [near(distance[0] + (distance[at] - distance[0]) * p + .02 * p * (1 - p))
                            for p in positions],
                 "retain": [near(.02 + .01 * p) for p in positions],
                 "test": [near(.11 - .02 * p) for p in positions],
                 "floor": {"cohort": .23, "retain": .02, "test": .08}},
    }
    if method not in WITHOUT_NOISE:
        one = READOUTS["black_box_cohort"][6][at]
        queries = [1, 2, 4, 8, 12, 16, 20]
        result["bounds_by_queries"] = {"queries": queries, "nats": [near(one * q ** .8) for q in queries]}
    return result


def overall(readouts):
    words = [r["verdict"] for r in readouts]
    for word in ["leaks", "over-forgotten", "cannot tell"]:
        if word in words:
            names = ", ".join(r["name"] for r in readouts if r["verdict"] == word)
            return {"verdict": word, "sentence": f"{words.count(word)} of {len(words)} readouts: {names}."}
    return {"verdict": "like retrained",
            "sentence": f"All {len(words)} readouts lie where those of retrained models lie."}


def audit(method, draw):
    readouts = [judged(identifier, method, draw) for identifier in READOUTS]
    return {"subject": method, "overall": overall(readouts), "readouts": readouts, "curves": curves(method, draw)}


def summary(method, draw):
    result = {"method": method, "converged": True, "shift_norm": 0.0, "displacement_norm": near(3.03 + draw.gauss(0, .02)),
              "seconds": 12.4, "epoch_equivalents": 20.1, "shared_kernel": method == "ntk"}
    if method == "ntk":
        direction, error, cosine = near(.021 + draw.gauss(0, .001)), near(.42 + draw.gauss(0, .01)), near(.49 + draw.gauss(0, .01))
        scale = near((direction + 2 * cosine * error) / direction)
        result.update({"direction_norm": direction, "shift_norm": near(direction * scale), "ridge": .02, "scale": scale,
                       "scale_rule": "trapezium", "curvature": "identity", "linearized_at": "weights", "solver": "dual",
                       "relative_residual": 2.1e-9, "condition_estimate": 3200.0,
                       "trapezium": {"cosine": cosine, "angle": near(math.acos(cosine)), "error_norm": error,
                                     "scale": scale}})
    if method == "consistent":
        result.update({"direction_norm": .21, "shift_norm": .42, "ridge": .02, "scale": 2.0,
                       "scale_rule": "the default of a cohort without unseen examples", "curvature": "identity",
                       "linearized_at": "weights", "solver": "dual", "relative_residual": 1.3e-9,
                       "condition_estimate": 3200.0})
    if method == "newton":
        result.update({"direction_norm": .5, "shift_norm": .5, "ridge": .02, "scale": 1.0, "scale_rule": "fixed",
                       "curvature": "softmax", "linearized_at": "weights", "solver": "dual"})
    if method in {"finetune", "retrain"}:
        result.update({"epochs": 10 if method == "finetune" else 53, "shift_norm": .09 if method == "finetune" else .61})
    if method not in WITHOUT_NOISE:
        result["noise"] = {"scale": 1e-9, "shape": "fisher", "epsilon": 1e-8, "expected_norm": .031, "private": True}
    return result


def tradeoff(method):
    at = METHODS.index(method)
    points = []
    for noise in [0, 1e-9, 1e-8, 1e-7, 1e-6]:
        point = {"noise": noise, "retain_error": near(READOUTS["retain_error"][6][at] + 2e5 * noise),
                 "test_error": near(READOUTS["test_error"][6][at] + 1e5 * noise),
                 "cohort_error": near(READOUTS["cohort_error"][6][at] + 1e5 * noise)}
        base = READOUTS["white_box"][6][at] * 1e-9
        for key, part in [("white_box", 1), ("black_box_cohort", 4e-3), ("black_box_retain", 6e-4),
                          ("black_box_test", 1e-3)]:
            point[key] = near(base * part / noise) if noise else "infinite"
        if not noise:
            point["reason"] = "no noise was added"
        points.append(point)
    return points


def landscape():
    def loss(x, y, minimum):
        return near(.02 + 1.4 * (x - minimum) ** 2 + .9 * y * y * (1 + .3 * math.sin(3 * x)), 3)

    positions = [near(-.5 + i / 10) for i in range(21)]
    axis = [near(-.4 + 2 * i / 16) for i in range(17)]
    lines = [{"name": name, "positions": positions, "cohort": [loss(1.1 * p, .1, 1) for p in positions],
              "retain": [loss(p, 0, 1.02) for p in positions], "test": [loss(p, .5, .9) for p in positions]}
             for name in ["w0 to w(D)", "w(D) to w(Dr)"]]
    points = {"w0": [0, 0], "w(D)": [1, 0], "w(Dr)": [1.05, .3], "ntk": [1.02, .14], "consistent": [1.04, .2],
              "newton": [1.06, .12]}
    return {"lines": lines,
            "surface": {"x": axis, "y": axis, "loss": [[loss(x, y - .1, 1) for x in axis] for y in axis],
                        "points": points, "x_label": "along w(D) − w0, in its length",
                        "y_label": "across it towards w(Dr)"}}


def projection(draw):
    def path(end, bend):
        steps = [1 - math.exp(-i / 8) for i in range(41)]
        return [[near(3.0 * s + draw.gauss(0, .01)), near(bend * math.sin(2.6 * s) + end * s + draw.gauss(0, .01))]
                for s in steps]

    paths = {"D": path(.1, .5), "Dr": path(.45, .42)}
    points = {"w0": [0, 0], "w(D)": paths["D"][-1], "w(Dr)": paths["Dr"][-1], "ntk": [3.02, .52],
              "consistent": [3.01, .6], "newton": [3.08, .48], "finetune": [2.99, .39], "fisher": [2.98, .36]}
    return {"explained": [.74, .11], "paths": paths, "points": points,
            "clouds": {"fisher": {"x": .35, "y": .28, "xy": .02}, "consistent": {"x": .05, "y": .04, "xy": .0006},
                       "ntk": {"x": .05, "y": .045, "xy": -.0004}}}


def ablations(draw):
    rows = []
    for curvature, letter in [("identity", "I"), ("softmax", "H")]:
        for at, place in [("weights", "w(D)"), ("start", "w0")]:
            for trapezium in [True, False]:
                good = .36 + (.05 if at == "start" else 0) + (0 if trapezium else .2) + (.03 if curvature == "softmax" else 0)
                rows.append({"name": f"ntk, H = {letter}, at {place}, {'trapezium' if trapezium else 'no trapezium'}",
                             "curvature": curvature, "linearize_at": at, "trapezium": trapezium,
                             "cohort_error": share(.2 if trapezium else 0, 25), "retain_error": .002,
                             "test_error": .164, "distance_cohort": near(good + draw.gauss(0, .01)),
                             "cosine": near(.3 + draw.gauss(0, .02)), "shift_norm": .43 if trapezium else .02})
    return rows


def run(seed):
    draw = random.Random(seed)
    result = {"seed": seed, "cohort": 1, "cohort_size": 25, "cohort_digest": f"blake2b-keyed:{seed:032x}",
              "data_digest": "blake2b:71c2b0aa13d5e6f7", "training": {
                  "original": {"epochs": 50 + seed, "seconds": 38.2, "displacement": 3.03},
                  "references": [{"epochs": 48 + i, "seconds": 36.5, "displacement": 3.01} for i in range(3)]},
              "methods": {}, "ablations": ablations(draw)}
    for method in METHODS:
        result["methods"][method] = {"summary": summary(method, draw), "audit": audit(method, draw)}
        if method in {"fisher", "ntk", "consistent"}:
            result["methods"][method]["tradeoff"] = tradeoff(method)
    if seed == 1:
        result["landscape"] = landscape()
    if seed < 3:
        result["projection"] = projection(draw)
    return result


def experiment():
    return {"pumice_record": "experiment", **HEAD, "title": "Fashion-MNIST, small All-CNN",
            "protocol": "title = \"Fashion-MNIST, small All-CNN\"\n\n[data]\nspec = \"fashion-mnist\"\nclasses = \"0-4\"\n"
                        "per_class = 100\n\n[request]\ncohort_size = 25\nseeds = [1, 2, 3]\n",
            "command": "pumice run protocols/demo.toml",
            "machine": {"processor": "AMD EPYC", "cores": 2, "memory": "23.5 GiB", "libtorch": "1.13.1"},
            "seconds": 210.4, "data": {"spec": "fashion-mnist", "classes": CLASSES, "train": 500, "test": 500},
            "model": {"architecture": "allcnn", "width": .25, "weights": 101933,
                      "body": "weights/fashion-mnist-allcnn-w0.25.safetensors", "body_digest": "blake2b:9a0c55d1e2f34b67"},
            "recipe": {"batch": 32, "rate": .003, "momentum": .9, "weight_decay": .02}, "weight_decay": .02,
            "request": {"cohort_size": 25, "cohort_class": "T-shirt/top", "cohorts": 1, "seeds": [1, 2, 3]},
            "methods": [{"name": m, "label": m, "description": DESCRIPTIONS[m], "noise": 0 if m in WITHOUT_NOISE else 1e-9}
                        for m in METHODS],
            "runs": [run(seed) for seed in [1, 2, 3]]}


def audit_record():
    draw = random.Random(7)
    judged_model = audit("consistent", draw)
    judged_model["subject"] = "scrubbed.safetensors"
    return {"pumice_record": "audit", **HEAD, **judged_model, "model": "blake2b:5c1f00aa", "original": "blake2b:0a0b0c0d",
            "start": "blake2b:01020304", "data": "blake2b:71c2b0aa13d5e6f7",
            "references": ["blake2b:aa01", "blake2b:aa02", "blake2b:aa03"],
            "data_request": {"source": "fashion-mnist", "classes": "0-4", "validation_per_class": 0, "seed": 1,
                             "per_class": 100},
            "cohort_size": 25, "cohort_digest": "blake2b-keyed:00112233445566778899aabbccddeeff", "examples": 500,
            "test_examples": 500, "noise": {"scale": 1e-9, "shape": "fisher", "private": True}, "threads": 2, "seconds": 31.0}


def forget_record():
    draw = random.Random(5)

    def errors(cohort, retain, test):
        return {"cohort": {"examples": 25, "error": cohort, "loss": near(.01 + 3 * cohort)},
                "retain": {"examples": 475, "error": retain, "loss": .012},
                "test": {"examples": 500, "error": test, "loss": .69}}

    def method(name, digest, cohort, noise):
        result = {**summary(name, draw), "model": digest, "errors": errors(cohort, .002, .162)}
        if not noise:
            result.pop("noise", None)
        return result

    checks = [("weight decay", "go", "known from the model: 0.02"),
              ("convergence", "go", "the gradient of all data is 0.02 of the cohort's"),
              ("statistics", "warning", "batch-norm statistics differ from the start's; they may have been computed from "
                                        "the cohort and forgetting does not reach them"),
              ("duplicates", "go", "no cohort example is among the retained ones")]
    return {"pumice_record": "forget", **HEAD, "model": "blake2b:0a0b0c0d", "data": "blake2b:71c2b0aa13d5e6f7",
            "data_request": {"source": "fashion-mnist", "classes": "0-4", "validation_per_class": 0, "seed": 1,
                             "per_class": 100}, "examples": 500, "cohort_size": 25, "weight_decay": .02,
            "loss": "cross-entropy", "decay_centre": "start", "threads": 2, "seed": 1, "order_seed": 1,
            "errors_before": errors(0.0, 0.0, .156),
            "applicability": {"advice": "warning", "checks": [dict(zip(("name", "advice", "sentence"), c)) for c in checks],
                              "gradient_norm": .3, "cohort_gradient_norm": 14.0, "data_gradient_norm": 31.0,
                              "decay_gradient_norm": 30.3, "statistics_as_start": False, "identical_pixels": 0,
                              "near_duplicates": 0, "linearity_error": .41},
            "methods": [method("ntk", "blake2b:77aa", .2, False), method("consistent", "blake2b:5c1f00aa", .32, True)],
            "start": "blake2b:01020304", "cohort_digest": "blake2b-keyed:00112233445566778899aabbccddeeff"}


for file_name, record in [("experiment", experiment()), ("audit", audit_record()), ("forget", forget_record())]:
    lines = ",\n".join(f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}" for key, value in record.items())
    (HERE / f"{file_name}.json").write_text("{" + lines + "}\n")
