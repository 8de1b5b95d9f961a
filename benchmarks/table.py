"""Figures as one table, for a terminal and for a Markdown page alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .figures import Figure

HEADER = ("what", "Ferrule", "target", "met", "beside", "its time", "ratio", "calibration ms")


def rendered(figures: Sequence[Figure], skipped: Mapping[str, str]) -> str:
    """A Markdown table with aligned columns, then what was skipped and why."""
    rows = [HEADER, *(_cells(figure) for figure in figures)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADER))]
    lines = [_line(row, widths) for row in rows]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    lines += ["", *(f"skipped {name}: {why}" for name, why in skipped.items())] if skipped else []
    return "\n".join(lines)


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    return "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"


def _cells(figure: Figure) -> tuple[str, ...]:
    return (
        figure.what,
        _time(figure.value, figure.unit),
        _target(figure),
        {True: "yes", False: "no", None: ""}[figure.met],
        figure.beside,
        "" if figure.other is None else _time(figure.other, figure.unit),
        "" if figure.ratio is None else f"{figure.ratio:.2f}",
        f"{figure.calibration_ms:.2f}",
    )


def _target(figure: Figure) -> str:
    limits: list[str] = []
    if figure.target is not None:
        limits.append(f"≤ {figure.target:g} {figure.unit}")
    if figure.target_ratio is not None:
        limits.append(f"≤ {figure.target_ratio:g} times")
    return ", ".join(limits)


def _time(value: float, unit: str) -> str:
    return f"{value:.3f} {unit}" if value < 10 else f"{value:.1f} {unit}"
