"""Heavy modules by name, imported at first use, so that the catalogue stays light (importing torch takes seconds)."""

from __future__ import annotations

import importlib
from types import ModuleType


class Lazy:
    """A module that is imported when an attribute is first asked for."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._module: ModuleType | None = None

    def __getattr__(self, attribute: str) -> object:
        if self._module is None:
            self._module = importlib.import_module(self._name)
        return getattr(self._module, attribute)
