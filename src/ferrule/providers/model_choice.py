"""Which model the settings choose, and how it is reached."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from ..core.values import named_value

if TYPE_CHECKING:
    from .model_catalog import OpenedModel


def choose_model(name: str | None, environ: Mapping[str, str], choice: ModelChoice | None = None) -> OpenedModel:
    """By name, environment or settings, otherwise the default of a service with a key. Raises `ModelError`."""
    from .model_catalog import open_model

    choice = choice or ModelChoice()
    named = choice.choose_name(name, environ)
    return open_model(named, choice.reaching(named, environ))


MODEL_VARIABLES: Final = ("FERRULE_MODEL", "ANTHROPIC_MODEL")
THINKING_VARIABLE: Final = "MAX_THINKING_TOKENS"
SMALL_VARIABLES: Final = ("FERRULE_SMALL_MODEL", "ANTHROPIC_SMALL_FAST_MODEL", "ANTHROPIC_DEFAULT_HAIKU_MODEL")
OPENAI_VARIABLES: Final = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "AZURE_OPENAI_ENDPOINT")
"""One of these is enough to reach a model of OpenAI, of Azure or of a service like them."""
HELPER_VARIABLE: Final = "FERRULE_API_KEY_HELPER"
"""A command that prints a key; the setting `apiKeyHelper` is the same."""


@named_value
class ModelChoice:
    name: str = ""
    small: str = ""
    """For small questions; empty for the session's model."""
    api_key: str = ""
    api_url: str = ""
    key_helper: str = ""
    """A command that prints the key."""

    def choose_name(self, given: str | None, environ: Mapping[str, str]) -> str | None:
        """The given name, then the environment, then the settings; `None` for the default of a service with a key."""
        return given or _first(environ, MODEL_VARIABLES) or self.name or None

    def choose_small_name(self, environ: Mapping[str, str]) -> str:
        return _first(environ, SMALL_VARIABLES) or self.small

    def thinking(self, environ: Mapping[str, str]) -> int | None:
        """How many tokens of an answer may be reasoning, if that is set.

        >>> ModelChoice().thinking({"MAX_THINKING_TOKENS": "8000"}), ModelChoice().thinking({})
        (8000, None)
        """
        text = _first(environ, (THINKING_VARIABLE,))
        return int(text) if text.isascii() and text.isdecimal() and int(text) else None

    def reaching(self, name: str | None, environ: Mapping[str, str]) -> Mapping[str, str]:
        """The environment, with the settings' key and URL for the model's service if it has none.

        >>> ModelChoice(api_key="k").reaching("openai:gpt", {})
        {'OPENAI_API_KEY': 'k'}
        """
        if not (self.api_key or self.api_url or self.key_helper):
            return environ
        service = _service(name or "", environ)
        own = {
            f"{service}_API_KEY": self.api_key,
            f"{service}_BASE_URL": self.api_url,
            HELPER_VARIABLE: self.key_helper if service == "ANTHROPIC" else "",
        }
        return {**{variable: value for variable, value in own.items() if value}, **environ}


def _service(name: str, environ: Mapping[str, str]) -> str:
    service, colon, _ = name.partition(":")
    if colon and service in ("anthropic", "openai", "gemini"):
        return service.upper()
    others = any(environ.get(variable) for variable in OPENAI_VARIABLES)
    return "ANTHROPIC" if not name or name.startswith("claude") or not others else "OPENAI"


def _first(environ: Mapping[str, str], names: tuple[str, ...]) -> str:
    return next(filter(None, (environ.get(name, "").strip() for name in names)), "")
