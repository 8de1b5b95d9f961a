"""One measured number, with what it is held against."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Unit: TypeAlias = Literal["µs", "ms", "MB"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """Ferrule's time, and where given that of what ran beside it in the same rounds."""

    benchmark: str
    what: str
    value: float
    unit: Unit
    calibration_ms: float
    beside: str = ""
    other: float | None = None
    """The time of `beside`, in the same unit."""
    target: float | None = None
    """The most that `value` may be."""
    target_ratio: float | None = None
    """The most that `ratio` may be."""

    @property
    def ratio(self) -> float | None:
        return self.value / self.other if self.other else None

    @property
    def met(self) -> bool | None:
        """Whether every target holds; `None` where there is none."""
        checks = [
            measured <= limit
            for measured, limit in ((self.value, self.target), (self.ratio, self.target_ratio))
            if measured is not None and limit is not None
        ]
        return all(checks) if checks else None
