"""Write the cards of the built-in tools anew, after a change of one: `python -m ferrule.tools`."""

from __future__ import annotations

from . import CARDS, render_cards

CARDS.write_text(render_cards(), encoding="utf-8")
