"""Variables in the settings of a server: `${NAME}` and `${NAME:-default}`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

_VARIABLE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")


class Expansion:
    """Puts in the values, and remembers the names that have none and no default: those stay as they are written.

    >>> expansion = Expansion({"HOST": "a.test"})
    >>> expansion("https://${HOST}:${PORT:-80}/${PATH_TO}"), expansion.unset
    ('https://a.test:80/${PATH_TO}', ['PATH_TO'])
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self.unset: list[str] = []

    def __call__(self, text: str) -> str:
        return _VARIABLE.sub(self._value, text)

    def each(self, texts: Mapping[str, str]) -> dict[str, str]:
        return {key: self(text) for key, text in texts.items()}

    def _value(self, found: re.Match[str]) -> str:
        name, default = found.groups()
        if name in self._environment and (self._environment[name] or default is None):
            return self._environment[name]
        if default is not None:
            return default
        if name not in self.unset:
            self.unset.append(name)
        return found[0]
