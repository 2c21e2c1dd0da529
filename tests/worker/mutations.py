"""Damaged and forged tables, as many as wanted, the same on every machine: every kind of file, cut, flipped, spliced."""

from __future__ import annotations

import gzip
import io
import random
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.engine.datasets.files import archive, workbook

_ROWS = [[i, 20 + i % 50, "FM"[i % 2], f"Zürich {i % 7}", 1000.5 + 37 * i, i % 2] for i in range(60)]
_NAMES = ["id", "age", "sex", "region", "income", "approved"]
_SPECIAL = (b'"', b"\0", b"\r", b"\n", b",", b";", b"\t", b"\xff", b"\xfe", b"PK\x03\x04", b"PAR1", b"=cmd", b"<script>", b"1e999",
            b"\xef\xbb\xbf", b"-", b"." , b"'", b"\x1f\x8b", b"9" * 400)  # fmt: skip


def _text(delimiter: str = ",", quote: str = "", end: str = "\n") -> str:
    lines = [_NAMES, *_ROWS]
    return end.join(delimiter.join(f"{quote}{cell}{quote}" for cell in row) for row in lines) + end


def _table() -> pa.Table:
    columns = {name: [row[place] for row in _ROWS] for place, name in enumerate(_NAMES)}
    table = pa.table(columns)
    return table.append_column("list", pa.array([[1, 2]] * len(_ROWS))).append_column(
        "group", pa.array([row[2] for row in _ROWS]).dictionary_encode()
    )


def _parquet(**options: Any) -> bytes:
    out = io.BytesIO()
    pq.write_table(_table(), out, **options)
    return out.getvalue()


def _arrow(make: Callable[..., Any]) -> bytes:
    out = io.BytesIO()
    table = _table()
    with make(out, table.schema) as writer:
        writer.write_table(table)
    return out.getvalue()


def originals() -> dict[str, bytes]:
    """Good files of every kind."""
    plain = _text().encode()
    return {
        "csv": plain,
        "quoted csv": _text(quote='"').encode(),
        "semicolons": _text(";", end="\r\n").encode("latin-1"),
        "utf-16": _text("\t").encode("utf-16"),
        "gzip": gzip.compress(plain, mtime=0),
        "zip": archive({"a.csv": plain, "note.md": b"x"}),
        "workbook": workbook({"Data": [_NAMES, *_ROWS], "More": [[1]]}, hidden=["More"]),
        "parquet": _parquet(),
        "plain parquet": _parquet(compression="none", use_dictionary=False, data_page_version="2.0"),
        "arrow": _arrow(pa.ipc.new_file),
        "arrow stream": _arrow(pa.ipc.new_stream),
    }


def mutated(count: int, seed: int = 0) -> Iterator[tuple[str, bytes]]:
    """``count`` damaged files, each with the kind it was made from."""
    draw = random.Random(seed)
    good = originals()
    for _ in range(count):
        kind = draw.choice(sorted(good))
        content = bytearray(good[kind])
        for _ in range(draw.choice((1, 1, 1, 1, 1, 2, 4, 16))):
            _mutate(content, draw)
        yield kind, bytes(content)


def _mutate(content: bytearray, draw: random.Random) -> None:
    if not content:
        return
    place = draw.randrange(len(content))
    other = draw.randrange(len(content))
    length = draw.choice((1, 1, 2, 4, 8, 64, 512))
    how = draw.choice((0, 0, 0, 1, 2, 3, 4, 4, 5, 6, 7))
    if how == 0:
        content[place] ^= 1 << draw.randrange(8)
    elif how == 1:
        content[place : place + length] = draw.randbytes(length)
    elif how == 2:
        del content[place:]
    elif how == 3:
        del content[place : place + length]
    elif how == 4:
        content[place:place] = draw.choice(_SPECIAL)
    elif how == 5:
        content[place:place] = content[other : other + length] * draw.choice((1, 3, 50))
    elif how == 6:
        content[place : place + 4] = draw.choice((0, 1, 0x7FFFFFFF, 0xFFFFFFFF, 0x80000000)).to_bytes(4, "little")
    else:
        content[place : place + length] = bytes(length)
