"""Texts in which line endings, quotes and repetition are likely."""

from __future__ import annotations

from hypothesis import strategies as st

from ferrule.text.styles import straight

QUOTES = "'\"\u2018\u2019\u2032\u201c\u201d\u2033"

texts = st.text(alphabet=f"ab \t\n\r{QUOTES}$\\1&é", max_size=40)
tiny = st.text(alphabet="a\n\r'\u2019", max_size=12)
plain = st.text(alphabet="ab \n\"'", max_size=40)
endings = st.sampled_from(["\n", "\r\n", "\r"])
contents = st.text(alphabet="ab \t'\"", min_size=1, max_size=6)


@st.composite
def held(draw: st.DrawFn, fillers: st.SearchStrategy[str] = texts) -> tuple[str, str]:
    """A text, and one that stands in it once or more, perhaps with other endings and quotes."""
    old = draw(fillers.filter(bool))
    places = draw(st.integers(1, 3))
    return draw(fillers) + "".join(draw(varied(old)) + draw(fillers) for _ in range(places)), old


@st.composite
def varied(draw: st.DrawFn, text: str) -> str:
    if not draw(st.booleans()):
        return text
    return "".join(draw(st.sampled_from(alternatives(char))) for char in text)


def alternatives(char: str) -> list[str]:
    return ["\n", "\r\n", "\r"] if char in "\r\n" else [q for q in QUOTES if straight(q) == straight(char)] or [char]
