"""What deny rules hide: tools that are denied as a whole, and files that no search may show."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ..core.tool import AnyTool
from ..core.verdicts import Behavior
from .path_patterns import Places
from .rule_matching import RuleIndex
from .rules import Rule


def hidden_tools(rules: Iterable[Rule], places: Places) -> Callable[[AnyTool], bool]:
    """Whether a rule denies every call of a tool. A tool with only some calls denied stays visible."""
    denies = RuleIndex(rules, Behavior.DENY, places)
    return lambda tool: denies.naming(tool).whole is not None


def plain_hidden_paths(rules: Iterable[Rule], places: Places) -> tuple[str, ...]:
    """The paths without wildcards that rules deny to read."""
    patterns = RuleIndex(rules, Behavior.DENY, places).reads.patterns
    return tuple(dict.fromkeys(path for pattern, _ in patterns if pattern.is_plain for path in pattern.spell_out()))


def hidden_paths(rules: Iterable[Rule], places: Places) -> Callable[[str], bool] | None:
    """Whether an absolute path is hidden from search results; `None` if no rule hides any."""
    denied = RuleIndex(rules, Behavior.DENY, places).reads
    return (lambda path: denied.find(path) is not None) if denied else None
