"""All models of which something is known, with the source of each fact."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..core.model import FactSource, ModelFacts
from ..core.values import named_value
from .known_models import anthropic_facts, known_facts, openai_facts
from .model_claims import Claims, FactSources, ModelClaim, facts_as_json, merge_claims


@named_value
class ListedModel:
    name: str
    facts: ModelFacts
    sources: Mapping[str, FactSource]
    """By the name of the fact in settings."""
    origin: str = ""
    """The server that it was asked of; empty for any."""
    date: str = ""
    """When its server was asked, or something was learned."""

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            **facts_as_json(self.facts),
            "sources": dict(self.sources),
            "server": self.origin or None,
            "date": self.date or None,
        }


def list_models(sources: FactSources) -> Iterator[ListedModel]:
    """Those of the settings, then those that were asked or learned of, then the rest of the table."""
    seen: set[str] = set()
    for name, claim in sources.settings.items():
        bare = name.partition(":")[2] if name.startswith(("anthropic:", "openai:")) else name
        facts, whence = merge_claims(table_facts(bare), (("settings", claim),))
        seen.add(name)
        yield ListedModel(name=name, facts=facts, sources=whence)
    kept = sources.kept()
    for origin, name, entries in kept.all() if kept is not None else ():
        found: Claims = tuple(
            (source, ModelClaim.from_json(entries[source])) for source in ("server", "learned") if source in entries
        )
        facts, whence = merge_claims(table_facts(name), (*found, ("settings", sources.chosen("", name))))
        date = max((str(entry.get("date", "")) for entry in entries.values()), default="")
        yield ListedModel(name=name, facts=facts, sources=whence, origin=origin, date=date)
    for name, facts in known_facts().items():
        if name not in seen:
            yield ListedModel(name=name, facts=facts, sources=merge_claims(facts, ())[1])


def table_facts(name: str) -> ModelFacts:
    """What the table says, or what is taken for granted of a model that is not in it.

    >>> table_facts("claude-opus-5").source, table_facts("qwen3").window
    ('table', 128000)
    """
    facts = openai_facts(name)
    return facts if facts.source == "table" else anthropic_facts(name)[0]
