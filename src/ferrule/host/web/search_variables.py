"""Where a search service is configured, and what is said where none is."""

from __future__ import annotations

from typing import Final

SEARCH_VARIABLES: Final = ("FERRULE_SEARCH_URL", "BRAVE_API_KEY", "TAVILY_API_KEY")
NO_SEARCH: Final = (
    "no search service is configured. Set FERRULE_SEARCH_URL (a SearXNG server), BRAVE_API_KEY or TAVILY_API_KEY"
)
