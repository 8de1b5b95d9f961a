"""A mode that is changed while a session runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ..permissions.modes import Mode
from .live_rules import Policy


class SwitchedPolicy:
    """The policy that somebody else gives, in the mode that was chosen since."""

    def __init__(self, policy: Callable[[], Policy]) -> None:
        self._policy = policy
        self._mode: Mode | None = None
        self._seen: Policy | None = None
        self._switched: Policy | None = None

    @property
    def mode(self) -> Mode:
        return self().mode

    def switch(self, mode: Mode) -> None:
        self._mode, self._seen = mode, None

    def __call__(self) -> Policy:
        """The same object as long as nothing has changed."""
        policy = self._policy()
        if self._mode is None:
            return policy
        if policy is not self._seen or self._switched is None:
            self._seen, self._switched = policy, replace(policy, mode=self._mode)
        return self._switched
