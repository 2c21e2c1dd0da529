"""The published protocol (Esipova et al. 2023, v1; METHODS.md 4.2, 4.3) on the real tables, which ``make proofs DATA=`` names.

Only here are columns standardised over all rows and groups balanced by their exact ratio, as the paper did; the product
does neither.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np

from worker.engine.results import EncodedData, GroupRows

ADULT_ONE_HOT = ("workclass", "education", "marital-status", "occupation", "relationship", "native-country")
ADULT_NUMBERS = ("age", "education-num", "capital-gain", "capital-loss", "hours-per-week")


@dataclass(frozen=True)
class Published:
    """A table of the paper: group 0 men, group 1 women; ``kept`` is the share of each group that enters."""

    name: str
    features: np.ndarray
    labels: np.ndarray
    women: np.ndarray
    kept: tuple[float, float]
    global_rate: float
    rows: dict[str, tuple[float, float]]

    def data(self, seed: int) -> EncodedData:
        """Groups balanced by coin, then 80/20 by coin."""
        draw = np.random.default_rng(seed)
        keep = draw.random(len(self.labels)) < np.where(self.women, self.kept[1], self.kept[0])
        order = draw.permutation(np.flatnonzero(keep))
        parts = np.where(np.arange(len(order)) < 0.8 * len(order), 0, 2).astype(np.int8)
        women, ids = self.women[order], np.arange(len(order), dtype=np.int64)
        return EncodedData(
            features=np.ascontiguousarray(self.features[order], dtype=np.float32),
            labels=self.labels[order],
            classes=2,
            parts=parts,
            row_ids=ids,
            unit_ids=ids,
            universe=len(ids),
            groups=(
                GroupRows("everyone", np.ones(len(ids), bool)),
                GroupRows("men", ~women),
                GroupRows("women", women),
            ),
            feature_names=tuple(f"column {number}" for number in range(self.features.shape[1])),
            training_groups=women.astype(np.int64),
            training_group_count=2,
        )


def read(name: str) -> dict[str, np.ndarray] | None:
    """Columns of a table in the folder DATA as text, or None where there is no such folder or file."""
    folder = os.environ.get("DATA")
    found = [path for end in (".csv", ".csv.gz") if folder and (path := Path(folder) / f"{name}{end}").exists()]
    if not found:
        return None
    rows = duckdb.sql(f"select * from read_csv('{found[0]}', all_varchar=true, nullstr='')")
    return {column: np.array(values, dtype=str) for column, values in rows.fetchnumpy().items()}


def one_hot(values: np.ndarray) -> np.ndarray:
    return (values[:, None] == np.unique(values)[None, :]).astype(np.float64)


def adult() -> Published | None:
    table = read("adult")
    if table is None:
        return None
    whole = np.all([table[name] != "?" for name in ADULT_ONE_HOT], axis=0)
    table = {name: values[whole] for name, values in table.items()}
    numbers = np.stack([table[name].astype(float) for name in ADULT_NUMBERS], 1)
    numbers = (numbers - numbers.mean(0)) / numbers.std(0)
    women, other = table["sex"] == "Female", table["race"] != "White"
    blocks = [numbers, women[:, None], other[:, None], *(one_hot(table[name]) for name in ADULT_ONE_HOT)]
    features = np.concatenate([block.astype(float) for block in blocks], 1)
    assert features.shape == (45_222, 98)
    rows = {
        "non-private": (80.5, 92.2),
        "dp-sgd": (69.9, 88.5),
        "fairness-lens-original": (68.8, 88.5),
        "dp-sgd-f": (78.0, 89.4),
        "dp-sgd-global": (78.5, 89.9),
        "dp-sgd-global-adapt": (80.7, 92.3),
    }
    labels, kept = (table["income"] == ">50K").astype(np.int64), (14_695 / 30_527, 1.0)
    return Published("Adult", features, labels, women, kept, 0.2, rows)


def dutch() -> Published | None:
    table = read("dutch_census_2001")
    if table is None:
        return None
    women = table["sex"] == "2"
    named = [name for name in table if name not in ("sex", "occupation", "prev_residence_place")]
    blocks = [women[:, None], (table["prev_residence_place"] == np.unique(table["prev_residence_place"])[-1])[:, None]]
    blocks += [one_hot(table[name]) for name in named]
    features = np.concatenate([block.astype(float) for block in blocks], 1)
    assert features.shape == (60_420, 59)
    rows = {
        "non-private": (80.4, 86.7),
        "dp-sgd": (74.3, 63.2),
        "fairness-lens-original": (73.1, 66.2),
        "dp-sgd-f": (77.9, 85.4),
        "dp-sgd-global": (80.0, 86.6),
        "dp-sgd-global-adapt": (80.4, 86.9),
    }
    labels = (table["occupation"] == "2_1").astype(np.int64)
    return Published("Dutch", features, labels, women, (1.0, 0.333 * 30_273 / 30_147), 1.0, rows)
