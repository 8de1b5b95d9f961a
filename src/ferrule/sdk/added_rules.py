"""Rules that a program adds and removes while a conversation lasts, on top of a policy that may change itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from ..app.live_rules import Policy
from ..core.verdicts import Behavior
from ..permissions.rules import Rule


class AddedRules:
    """Satisfies what `Settings.reload` wants: the same object as long as nothing has changed."""

    def __init__(self, policy: Callable[[], Policy]) -> None:
        self._policy = policy
        self._added: tuple[Rule, ...] = ()
        self._seen: Policy | None = None
        self._joined: Policy | None = None

    def add(self, rules: Iterable[Rule]) -> None:
        self._change((*rules, *self._added))

    def remove(self, behavior: Behavior, texts: Iterable[str]) -> None:
        """Those that were added; what the settings say stays."""
        gone = frozenset(texts)
        self._change(tuple(rule for rule in self._added if rule.behavior is not behavior or rule.text not in gone))

    def replace(self, behavior: Behavior, rules: Iterable[Rule]) -> None:
        self._change((*rules, *(rule for rule in self._added if rule.behavior is not behavior)))

    def _change(self, rules: tuple[Rule, ...]) -> None:
        self._added, self._seen = rules, None

    def __call__(self) -> Policy:
        policy = self._policy()
        if not self._added:
            return policy
        if policy is not self._seen or self._joined is None:
            self._seen, self._joined = policy, replace(policy, rules=(*self._added, *policy.rules))
        return self._joined
