from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ferrule.instructions.markdown import front_matter, imports, without_comments
from tests.requirement import requirement

TEXTS = st.lists(
    st.sampled_from(["```\n", "~~~\n", "<!-- x -->\n", "<!--\n", "-->\n", "@a.md\n", "`@b`\n", "text\n", "\n"])
)


@requirement("LOOP-3")
def test_imports_are_found_but_not_in_code() -> None:
    text = "Read @a.md and\n@~/b.md\n```\n@code.md\n```\n`@span.md` ``@two.md`` x@mail.org\n- @with\\ space.md\n"

    assert imports(text) == ["a.md", "~/b.md", "with space.md"]


@requirement("LOOP-3")
def test_comments_that_begin_a_line_are_taken_out_but_not_in_code() -> None:
    text = "a\n<!-- one -->\n<!-- two\nlines -->\nb <!-- stays -->\n```\n<!-- shown -->\n```\n"

    assert without_comments(text) == "a\nb <!-- stays -->\n```\n<!-- shown -->\n```\n"


@given(TEXTS)
def test_taking_comments_out_keeps_lines_as_they_are_and_in_order(parts: list[str]) -> None:
    text = "".join(parts)

    kept = without_comments(text).splitlines()

    whole = iter(text.splitlines())
    assert all(line in whole for line in kept)


def test_a_rule_says_which_files_it_is_about() -> None:
    assert front_matter("---\npaths:\n  - src/**\n  - '*.py'\n---\nbody\n").paths == ("src/**", "*.py")
    assert front_matter('---\npaths: "a/*.{ts,tsx}, b/**"\n---\nbody\n').paths == ("a/*.{ts,tsx}", "b/**")
    assert front_matter("---\npaths: [a, 'b']\n---\nbody\n").paths == ("a", "b")
    assert front_matter("no front matter\n---\n").paths == ()


def test_front_matter_that_is_not_understood_says_so() -> None:
    assert front_matter("---\npaths:\nbody").fault == "its front matter has no end"
    assert front_matter("---\npaths:\n---\nbody").fault == "its `paths` could not be read"
