"""What several sources say of a model, and what holds: settings before what was learned, before its server's word."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Any, Final, TypeAlias, get_args

from ..core.model import Effort, FactSource, ModelFacts
from ..core.values import named_value
from .kept_facts import KeptFacts

OUTPUT_VARIABLE: Final = "CLAUDE_CODE_MAX_OUTPUT_TOKENS"
LEAST_WINDOW: Final = 16_000
"""Tokens. The instructions and the tools alone take about half of that."""
_FACTS: Final[Mapping[str, str]] = {
    "window": "window",
    "output": "most_output",
    "images": "takes_images",
    "documents": "takes_documents",
    "input_price": "input_price",
    "output_price": "output_price",
    "cache_read_price": "cache_read_price",
    "cache_write_price": "cache_write_price",
    "effort": "effort",
    "wire": "wire",
}
"""The name of each fact in settings, and in `ModelFacts`."""
_NUMBERS: Final = frozenset({"window", "output"})
_SWITCHES: Final = frozenset({"images", "documents"})
_WORDS: Final = frozenset({"effort", "wire"})


@named_value
class ModelClaim:
    """Some facts of a model from one source. What it does not say is `None`."""

    window: int | None = None
    output: int | None = None
    images: bool | None = None
    documents: bool | None = None
    input_price: float | None = None
    output_price: float | None = None
    cache_read_price: float | None = None
    cache_write_price: float | None = None
    effort: Effort | None = None
    wire: str | None = None

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> ModelClaim:
        """What is not valid in it is left out: it may have been written by another version.

        >>> ModelClaim.from_json({"window": 32768, "images": "yes"})
        ModelClaim(window=32768, output=None, images=None, documents=None, input_price=None, output_price=None, \
cache_read_price=None, cache_write_price=None, effort=None, wire=None)
        """
        return cls(**{name: value[name] for name in _FACTS if name in value and _is_valid(name, value[name])})

    def as_json(self) -> dict[str, Any]:
        return {name: said for name in _FACTS if (said := getattr(self, name)) is not None}

    def apply(self, facts: ModelFacts, source: FactSource) -> ModelFacts:
        said = {_FACTS[name]: value for name, value in self.as_json().items()}
        if "window" in self.as_json():
            said["source"] = source
        if source == "settings" and self.output is not None:
            said["states_output"] = True
        return replace(facts, **said) if said else facts


def _is_valid(name: str, value: Any) -> bool:
    if name in _SWITCHES:
        return isinstance(value, bool)
    if name in _WORDS:
        return isinstance(value, str) and (name != "effort" or value in get_args(Effort))
    if isinstance(value, bool) or not isinstance(value, int if name in _NUMBERS else int | float):
        return False
    return value > 0 if name in _NUMBERS else value >= 0


Claims: TypeAlias = tuple[tuple[FactSource, ModelClaim], ...]


@named_value
class FactSources:
    """Where facts come from besides the table, for all models of a session."""

    settings: Mapping[str, ModelClaim] = field(default_factory=dict[str, ModelClaim])
    """By the name of the model, also with its service before a colon."""
    file: Path | None = None
    """What servers said and what was learned; `None` to keep and ask nothing."""

    def chosen(self, service: str, name: str) -> ModelClaim:
        """What settings say of a model of this service."""
        return self.settings.get(f"{service}:{name}") or self.settings.get(name) or ModelClaim()

    def kept(self) -> KeptFacts | None:
        return KeptFacts(self.file) if self.file is not None else None

    def claims(self, service: str, origin: str, name: str) -> Claims:
        """What each source says, in the order in which one replaces another."""
        settings: tuple[FactSource, ModelClaim] = ("settings", self.chosen(service, name))
        kept = self.kept()
        if kept is None:
            return (settings,)
        return (*((source, ModelClaim.from_json(entry)) for source, entry in kept.entries(origin, name)), settings)


def merge_claims(facts: ModelFacts, claims: Claims) -> tuple[ModelFacts, Mapping[str, FactSource]]:
    """What holds, and where each of it comes from, by its name in settings.

    A window that was learned only makes it smaller. What the table has is not asked of a server.
    """
    sources: dict[str, FactSource] = {
        name: facts.source for name, own in _FACTS.items() if getattr(facts, own) not in (None, "")
    }
    from_table = facts.source == "table"
    for source, claim in claims:
        if source == "server" and from_table:
            continue
        if source == "learned" and (claim.window or 0) >= facts.window:
            continue
        facts = claim.apply(facts, source)
        sources.update(dict.fromkeys(claim.as_json(), source))
    return facts, sources


def limit_output(facts: ModelFacts, environ: Mapping[str, str]) -> ModelFacts:
    """With the longest answer that the environment sets, if that is less than the model's own limit."""
    text = environ.get(OUTPUT_VARIABLE, "").strip()
    if not re.fullmatch(r"[1-9][0-9]{0,8}", text):
        return facts
    return replace(facts, most_output=min(int(text), facts.most_output), states_output=True)


def facts_as_json(facts: ModelFacts) -> dict[str, Any]:
    """Under the names that settings use."""
    said = {name: getattr(facts, own) for name, own in _FACTS.items()}
    return said | {"wire": facts.wire or None}


def refuse_small_window(name: str, facts: ModelFacts) -> str | None:
    """Why a conversation with tools cannot be held in this window, and what to set; `None` where it can.

    What was learned is not certain enough for that: the conversation is then kept as short as it must be.
    """
    if facts.window >= LEAST_WINDOW or facts.source == "learned":
        return None
    where = {"settings": "`models` in your settings says so", "server": "its server says so"}.get(facts.source, "")
    return (
        f"The context window of {name} is {facts.window:,} tokens{f' ({where})' if where else ''}, and at least "
        f"{LEAST_WINDOW:,} are needed. {HOW_TO_ENLARGE} Then run `ferrule models probe {name}`, or set "
        f'`"models": {{"{name}": {{"window": N}}}}` in your settings.'
    )


HOW_TO_ENLARGE: Final = (
    "Give it a larger one where it is served: `OLLAMA_CONTEXT_LENGTH=32768 ollama serve` or `num_ctx` for Ollama, "
    "`--ctx-size` for llama.cpp, `--max-model-len` for vLLM, the context length in LM Studio."
)
