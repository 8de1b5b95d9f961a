"""What deny rules take out of sight: tools that are denied as a whole, files that no search may show."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ..core.tool import AnyTool
from ..core.verdicts import Behavior
from .path_patterns import Places
from .rule_matching import RuleIndex
from .rules import Rule


def hidden_tools(rules: Iterable[Rule], places: Places) -> Callable[[AnyTool], bool]:
    """Whether a rule denies every call of a tool. One that denies some calls leaves it in sight."""
    denies = RuleIndex(rules, Behavior.DENY, places)
    return lambda tool: denies.naming(tool).whole is not None


def plain_hidden_paths(rules: Iterable[Rule], places: Places) -> tuple[str, ...]:
    """The paths that rules deny to read without a wildcard."""
    patterns = RuleIndex(rules, Behavior.DENY, places).reads.patterns
    return tuple(dict.fromkeys(path for pattern, _ in patterns if pattern.is_plain for path in pattern.spell_out()))


def hidden_paths(rules: Iterable[Rule], places: Places) -> Callable[[str], bool] | None:
    """Whether an absolute path is to be in no result of a search; `None` where no rule hides any."""
    denied = RuleIndex(rules, Behavior.DENY, places).reads
    return (lambda path: denied.find(path) is not None) if denied else None
