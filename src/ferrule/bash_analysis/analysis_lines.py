"""An analysis in words for people."""

from __future__ import annotations

from ..core.effects import Opaque, RunsCommand, describe_touch
from ..core.verdicts import Risk
from .analysis import Analysis


def explain_analysis(analysis: Analysis) -> list[str]:
    """Lines that describe what would happen, command by command, and why to ask.

    >>> from .analysis import analyse
    >>> print(*explain_analysis(analyse("cat a; rm b", cwd="/srv", home="/home/u")), sep="\\n")
    This changes something.
    cat a
      reads /srv/a
    rm b
      removes /srv/b
    Risk (medium): It removes /srv/b.
    """
    lines = [_verdict(analysis)]
    for report in analysis.commands:
        lines.append(_one_line(report.source))
        for touch in report.touches:
            if isinstance(touch, Opaque):
                continue
            if isinstance(touch, RunsCommand):
                if touch.argv != report.argv:
                    lines.append(f"  {describe_touch(touch)}")
            else:
                lines.append(f"  {describe_touch(touch)}")
        lines.extend(f"  not known: {doubt}" for doubt in report.doubts)
    of_commands = {doubt for report in analysis.commands for doubt in report.doubts}
    lines.extend(reason for reason in analysis.reasons if not any(reason.endswith(f"{one}.") for one in of_commands))
    lines.extend(_risk_line(risk) for risk in analysis.risks)
    return lines


def _verdict(analysis: Analysis) -> str:
    if analysis.effects.unknown:
        return "What this does is not known for certain."
    return "This only looks." if analysis.effects.read_only else "This changes something."


def _risk_line(risk: Risk) -> str:
    denied = ", denied" if risk.denies else ""
    return f"Risk ({risk.severity}{denied}): {risk.message}"


def _one_line(source: str) -> str:
    line = " ".join(source.split())
    return line if len(line) <= 100 else f"{line[:99]}…"
