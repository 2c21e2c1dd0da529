"""Recomputes costs, gaps and intervals of an audit from its CSV exports, with numpy alone and none of the product's code.

    python docs/recompute.py statistics.csv measurements.csv METRIC costs.csv gaps.csv
compares what ``/api/v1/audits/{id}/statistics.csv`` and ``measurements.csv`` give with ``costs.csv?metric=METRIC`` and
``gaps.csv?metric=METRIC``, digit for digit. METRIC is one that counts suffice for. Variance: seeds + units - residual, at
least each of the first two; Student's t with Satterthwaite's degrees of freedom (METHODS: two-way components).
"""

import csv
import math
import sys
from urllib.parse import unquote

import numpy as np

HIGHER, UNBOUNDED = {"accuracy", "balanced_accuracy", "true_positive_rate", "precision"}, {"loss", "brier_score"}
SUMS = ("units", "rows", "total", "total_squared", "cross", "rows_squared", "total_each_squared")


def t_quantile(freedom, p=0.975):
    """Student's t: its density is a power of a cosine after t = sqrt(freedom) tan(angle); Newton, Gauss-Legendre."""
    nodes, weights = np.polynomial.legendre.leggauss(200)
    constant = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(math.pi)
    angle = math.atan(2 / math.sqrt(freedom))
    for _ in range(60):
        below = constant * angle / 2 * np.sum(weights * np.cos(angle / 2 * (nodes + 1)) ** (freedom - 1))
        step = (below - (p - 0.5)) / (constant * math.cos(angle) ** (freedom - 1))
        angle = min(max(angle - step, angle / 2), (angle + math.pi / 2) / 2)
    return math.sqrt(freedom) * math.tan(angle)


def half_width(d, m, least):  # of the mean of d, one a seed, with the sums m of one measurement
    seeds, units, rows, mean = len(d), m["units"], m["rows"], m["total"] / m["rows"]
    scale = units / (units - 1) / rows**2
    squares = m["total_squared"] - 2 * mean * m["cross"] + mean**2 * m["rows_squared"]
    of_units, of_seeds = max(squares, least) * scale, np.var(d, ddof=1) / seeds
    rest = max(m["total_each_squared"] - m["total_squared"] - m["rows_squared"] * np.var(d), 0.0) * scale / (seeds - 1)
    parts = [(of_seeds, seeds - 1), (of_units, units - 1), (rest, (seeds - 1) * (units - 1))]
    (most, freedom), both = max(parts[:2]), of_seeds + of_units - rest
    if both > most:
        most, freedom = both, both**2 / sum(v**2 / f for v, f in parts if v > 0)
    return t_quantile(freedom) * math.sqrt(most)


def read(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def values_by_run(statistics, metric):
    cells = {}
    for row in statistics:
        if row["part"] == "test" and row["n"]:
            key = (row["method"], row["epsilon_asked"], int(row["seed"]), row["group"])
            n, p, s = cells.setdefault(key, ({}, {}, {"loss": {}, "squared_error": {}}))
            label = int(row["label"])
            n[label], p[label] = int(row["n"]), [int(cell) for cell in row["predicted"].strip("[]").split(",")]
            s["loss"][label], s["squared_error"][label] = float(row["loss"]), float(row["squared_error"])
    return {key: share(metric, *cell) for key, cell in cells.items()}


def share(metric, n, p, s):  # rows, rows by predicted label, and sums of one run and group, by true label
    if metric == "balanced_accuracy":
        return np.mean([p[y][y] / n[y] if n[y] else np.nan for y in n])
    rows, chosen = sum(n.values()), sum(p[y][1] for y in n)
    top, bottom = {
        "accuracy": (sum(p[y][y] for y in n), rows),
        "loss": (sum(s["loss"].values()), rows),
        "brier_score": (sum(s["squared_error"].values()), rows),
        "selection_rate": (chosen, rows),
        "true_positive_rate": (p[1][1], n[1]),
        "false_negative_rate": (n[1] - p[1][1], n[1]),
        "false_positive_rate": (p[0][1], n[0]),
        "precision": (p[1][1], chosen),
    }[metric]
    return top / bottom if bottom else np.nan


def costs_of(found, sums, metric, row):
    point, group = (row["method"], row["epsilon_asked"]), row["group"]
    base = {key[2]: v for key, v in found.items() if key[:2] == ("non-private", "") and key[3] == group}
    own = {key[2]: v for key, v in found.items() if key[:2] == point and key[3] == group and key[2] in base}
    d = np.array([base[seed] - own[seed] for seed in sorted(own)])
    made = {"value": np.mean(list(own.values())), "baseline": np.mean([base[seed] for seed in own])}
    made["cost"] = np.mean(d) * (1 if metric in HIGHER else -1)
    if row["interval"] == "both" and row["low"]:
        m, cost = {name: float(sums[*point, group][name]) for name in SUMS}, round(made["cost"], 12)
        half = half_width(d, m, 0.0 if metric in UNBOUNDED else 1.0)
        made |= {"low": cost - half, "high": cost + half}
    return made


def gaps_of(means, row):  # over the groups of its attributes that can be judged
    names = sorted(unquote(pair) for pair in row["by"].split(" × "))
    points = (row["method"], row["epsilon_asked"]), ("non-private", "")
    keys = {g for p, g in means if p == points[0] and sorted(unquote(x.split("=")[0]) for x in g.split("&")) == names}
    now, before = (np.array([means[point, key] for key in sorted(keys)]) for point in points)
    made = {"gap": np.ptp(now), "baseline_gap": np.ptp(before), "cost_gap": np.ptp(before - now)}
    return made | {"excess": round(made["gap"], 12) - round(made["baseline_gap"], 12)}


def main(statistics, measurements, metric, costs, gaps):
    """Compare every number that is given; returns how many there were."""
    found, checked, means = values_by_run(read(statistics), metric), 0, {}
    sums = {(m["method"], m["epsilon_asked"], m["group"]): m for m in read(measurements) if m["quantity"] == metric}
    made = [(row, costs_of(found, sums, metric, row)) for row in read(costs) if row["value"]]
    for row, numbers in (pair for pair in made if "to judge" not in pair[0]["reason"]):
        means[(row["method"], row["epsilon_asked"]), row["group"]] = numbers["value"]
    made += [(row, gaps_of(means, row)) for row in read(gaps) if row["gap"]]
    for row, numbers in made:
        for name in (name for name in numbers if row[name]):
            places = 10 if name in ("low", "high") else 12
            assert round(float(numbers[name]), places) == float(row[name]), (row, name, numbers[name])
            checked += 1
    return checked


if __name__ == "__main__":
    print(f"{main(*sys.argv[1:])} numbers agree digit for digit.")
