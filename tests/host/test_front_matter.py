"""Heads of Markdown files: what YAML says of them, and what was meant where they are not quite YAML."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ferrule.host.storage.front_matter import LONGEST_HEAD, BadHead, split_head

WORDS = st.text(alphabet="ab-*:#'\"[]{},|>&! \t%@`?\\.é\u2028\x07", max_size=12)
KEYS = st.sampled_from(["name", "description", "allowed-tools", "x_1"])
LINES = st.one_of(
    st.builds("{}: {}".format, KEYS, WORDS),
    st.builds("{}:{}".format, KEYS, WORDS),
    st.builds("{}- {}".format, st.sampled_from(["", " ", "  "]), WORDS),
    st.builds("{}{}".format, st.sampled_from(["", " ", "  ", "\t"]), WORDS),
    st.sampled_from(["", "# a comment", "tools: |", "tools: >-", "tools:", "tools: [a, b]", "tools: *"]),
)


def _head(text: str) -> dict[str, Any]:
    return dict(split_head(f"---\n{text}\n---\nbody").head)


@given(st.lists(LINES, max_size=6))
def test_what_is_valid_yaml_means_what_yaml_says(lines: list[str]) -> None:
    text = "\n".join(lines)
    try:
        said = yaml.load(text + "\n", yaml.BaseLoader)
    except yaml.YAMLError:
        said = None
    if not isinstance(said, dict) or "&" in text or any(line.startswith("---") for line in lines):
        return

    found = split_head(f"---\n{text}\n---\nbody")

    assert found.head == {str(key): value for key, value in said.items()}
    assert found.fault == ""


@given(st.lists(LINES, max_size=6))
def test_a_head_is_read_or_refused_and_nothing_else(lines: list[str]) -> None:
    text = "\n".join(lines)
    try:
        found = split_head(f"---\n{text}\n---\nbody")
    except BadHead:
        return

    assert isinstance(found.head, dict)


@pytest.mark.parametrize(
    ("head", "meant"),
    [
        ("tools: *\nname: x", {"tools": "*", "name": "x"}),
        ("allowed-tools: *", {"allowed-tools": "*"}),
        ("tools: *, Read", {"tools": "*, Read"}),
        ("description: Does it: well", {"description": "Does it: well"}),
        ("description: *very* good", {"description": "*very* good"}),
        ("description: \"a\" and 'b'", {"description": "\"a\" and 'b'"}),
        ("description: 'it is\" so", {"description": "'it is\" so"}),
        ("name:\tx\ntools:\tRead", {"name": "x", "tools": "Read"}),
        ("tools:\n\t- Read\n\t- Grep\nname: x", {"tools": ["Read", "Grep"], "name": "x"}),
        ("description: Use it:\n<example>\nnow\n</example>\nname: x", None),
        ("name: x\ndescription: @you", {"name": "x", "description": "@you"}),
    ],
)
def test_what_is_not_quite_yaml_is_read_as_it_was_meant_and_says_so(head: str, meant: dict[str, Any] | None) -> None:
    found = split_head(f"---\n{head}\n---\nbody")

    assert found.fault
    assert found.body == "body"
    if meant is None:
        assert found.head["name"] == "x"
        assert "</example>" in found.head["description"]
    else:
        assert found.head == meant


def test_a_wrong_indent_does_not_hide_what_limits(  # it would be part of another key's text
) -> None:
    head = _head("name: x\n\ttools: Read\n\tdisallowedTools: Bash\ndescription: y: z")

    assert (head["tools"], head["disallowedTools"]) == ("Read", "Bash")


def test_a_hint_in_brackets_is_a_text_without_a_word_about_it() -> None:
    found = split_head("---\nargument-hint: [file] [line]\n---\n")

    assert (found.head, found.fault) == ({"argument-hint": "[file] [line]"}, "")


def test_anchors_are_texts() -> None:
    bomb = "a: &a [x, x]\n" + "".join(f"b{n}: &b{n} [*a, *a]\n" for n in range(9))

    assert _head(bomb)["b0"] == "&b0 [*a, *a]"


def test_a_head_without_an_end_and_one_that_is_too_long_are_refused() -> None:
    with pytest.raises(BadHead, match="has no end"):
        split_head("---\nname: x\n")
    with pytest.raises(BadHead, match="is longer than"):
        split_head(f"---\nname: {'x' * LONGEST_HEAD}\n---\n")
