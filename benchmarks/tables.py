"""A table of 3 million rows and about 300 MB: how long the reader takes beside DuckDB's CREATE TABLE AS, and its peak memory.

    python benchmarks/tables.py [--rows N] [--json]

Both read the same file in the same run, one after the other, three times each; the ratio is of the medians. DuckDB uses all
cores and its own guesses; the reader runs in its child with all its limits and does everything an upload goes through but
the encryption: encoding, quotes, types, missing codes, profile, duplicates, and the stored table.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.csv

from worker.engine.datasets.formats.base import ReadLimits
from worker.reader import Reader

GOAL_RATIO = 3.0
GOAL_BYTES = 1.5 * 2**30
REPEATS = 3


def write_table(path: Path, rows: int, seed: int = 0) -> None:
    """Thirteen columns of an invented lender: numbers, groups, codes with leading zeros, dates, quoted text."""
    draw = np.random.default_rng(seed)

    def pick(values: list[str]) -> pa.Array:
        codes = pa.array(draw.integers(0, len(values), rows).astype(np.int32))
        return pa.DictionaryArray.from_arrays(codes, pa.array(values)).dictionary_decode()

    days = pa.array((draw.integers(0, 9000, rows) + 10_000).astype(np.int32)).cast(pa.date32())
    table = pa.table(
        {
            "case": pa.array(np.arange(rows)),
            "age": pa.array(draw.integers(18, 95, rows)),
            "sex": pick(["Female", "Male", "Other"]),
            "region": pick([f"District {place:03d}" for place in range(300)]),
            "income": pa.array(np.round(draw.lognormal(10, 0.5, rows), 2)),
            "debt_ratio": pa.array(np.round(draw.random(rows), 4)),
            "zip": pick([f"{place:05d}" for place in range(900)]),
            "opened": days,
            "job": pick(["clerk", "driver", "nurse", "teacher", "cook, baker", "smith"]),
            "hours": pa.array(draw.integers(0, 80, rows)),
            "score": pa.array(np.round(draw.normal(600, 80, rows), 1)),
            "product": pick([f"consumer credit line {place}" for place in range(40)]),
            "approved": pick(["yes", "no"]),
        }
    )
    options = pyarrow.csv.WriteOptions(quoting_style="needed")
    pyarrow.csv.write_csv(table, path, options)


def duckdb_seconds(path: Path) -> float:
    """CREATE TABLE AS with DuckDB's defaults."""
    connection = duckdb.connect(":memory:")
    started = time.perf_counter()
    connection.execute("CREATE TABLE cells AS SELECT * FROM read_csv(?)", [str(path)])
    seconds = time.perf_counter() - started
    connection.close()
    return seconds


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=3_000_000)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    ours, theirs, peak = [], [], 0
    with tempfile.TemporaryDirectory() as name, Reader() as reader:
        folder = Path(name)
        path = folder / "table.csv"
        write_table(path, arguments.rows)
        megabytes = path.stat().st_size / 1e6
        print(f"{arguments.rows:,} rows, {megabytes:.0f} MB")
        for _ in range(REPEATS):
            theirs.append(duckdb_seconds(path))
            started = time.perf_counter()
            found = reader.read(path, None, {}, ReadLimits(), folder)
            ours.append(time.perf_counter() - started)
            peak = max(peak, found.peak_bytes)
            print(f"DuckDB {theirs[-1]:.2f} s, reader {ours[-1]:.2f} s, peak {found.peak_bytes / 2**30:.2f} GiB")
    figures = {
        "rows": arguments.rows,
        "megabytes": round(megabytes, 1),
        "duckdb_seconds": round(statistics.median(theirs), 3),
        "reader_seconds": round(statistics.median(ours), 3),
        "ratio": round(statistics.median(ours) / statistics.median(theirs), 3),
        "ratio_goal": GOAL_RATIO,
        "peak_bytes": peak,
        "peak_goal_bytes": int(GOAL_BYTES),
    }
    print(f"ratio {figures['ratio']} (goal {GOAL_RATIO:g}), peak {peak / 2**30:.2f} GiB (goal 1.5)")
    if arguments.json:
        print(json.dumps(figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
