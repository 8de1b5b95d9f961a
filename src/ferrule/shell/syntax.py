"""The syntax tree of a command, and the check that tree and scan see the same words.

The parser recovers from what it does not understand, and in places reads
another language than bash does. So nothing is taken from it alone: every word
and operator of the tree must be one of the scan's, and the other way round,
and no simple command may reach over a separator.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import tree_sitter_bash
from tree_sitter import Language, Node, Parser

from ..core.values import plain_value
from .quoting import as_bytes_text
from .scan import scanned
from .tokens import Scan, Token

STRUCTURES = frozenset(
    {
        "program",
        "command",
        "command_name",
        "pipeline",
        "list",
        "redirected_statement",
        "file_redirect",
        "herestring_redirect",
        "heredoc_redirect",
        "subshell",
        "compound_statement",
        "if_statement",
        "elif_clause",
        "else_clause",
        "for_statement",
        "while_statement",
        "do_group",
        "case_statement",
        "case_item",
        "function_definition",
        "negated_command",
        "test_command",
        "variable_assignments",
        "declaration_command",
        "unset_command",
        "binary_expression",
        "unary_expression",
        "parenthesized_expression",
    }
)
"""Nodes that are made of words and operators; every other node is one, or stands inside one."""
SUBSTITUTIONS = frozenset({"command_substitution", "process_substitution"})
_SILENT = frozenset({"comment", "heredoc_body", "heredoc_end", "heredoc_content", "\n"})


@plain_value
class Syntax:
    """A command that was read, with what stands against trusting it."""

    text: str
    """The command as bytes in the form of Latin-1, as positions count."""
    root: Node
    words: Mapping[int, Token]
    """The scan's tokens by where they start; of two that start together, the outer."""
    scan: Scan
    doubts: tuple[str, ...]

    def in_order(self) -> list[Token]:
        """The tokens as they stand, one that holds others before those."""
        return sorted(self.scan.tokens, key=lambda token: (token.start, -token.end))


def parsed(command: str) -> Syntax:
    """The syntax of a command. Raises `Unreadable` where there is none to speak of."""
    scan = scanned(command)
    text = as_bytes_text(command)
    root = _parser().parse(text.encode("latin-1")).root_node
    words: dict[int, Token] = {}
    for token in scan.tokens:
        held = words.get(token.start)
        if held is None or token.end > held.end:
            words[token.start] = token
    doubts = scan.doubts
    if root.has_error:
        doubts = (*doubts, "its grammar")
    elif not doubts and not _agree(root, scan):
        doubts = ("where its words end",)
    return Syntax(text, root, words, scan, doubts)


@cache
def _parser() -> Parser:
    return Parser(Language(tree_sitter_bash.language()))


def _agree(root: Node, scan: Scan) -> bool:
    found: list[tuple[int, int]] = []
    runs: set[int] = set()
    run_at = {(token.start, token.end): token.run for token in scan.tokens}
    nodes = [root]
    while nodes:
        node = nodes.pop()
        words: list[tuple[int, int]] = []
        is_command = node.type == "command"
        children = node.children
        for child in children[1:-1] if node.type in SUBSTITUTIONS else children:
            kind = child.type
            if kind in STRUCTURES:
                nodes.append(child)
                if is_command:
                    words.append(child.byte_range if kind == "command_name" else child.children[0].byte_range)
            elif kind not in _SILENT:
                words.append(child.byte_range)
                found.append(words[-1])
                if child.child_count:
                    nodes.extend(substitutions(child))
            elif kind == "heredoc_body":
                nodes.extend(substitutions(child))
        if is_command:
            of_words = {run_at.get(span) for span in words}
            if len(of_words) != 1 or of_words & runs:
                return False
            runs |= {run for run in of_words if run is not None}
    return len(found) == len(scan.tokens) and set(found) == run_at.keys()


def substitutions(word: Node) -> list[Node]:
    """The command and process substitutions in a word, without those inside others; as structures to go into."""
    found: list[Node] = []
    nodes = [word]
    while nodes:
        node = nodes.pop()
        if node.type in SUBSTITUTIONS:
            found.append(node)
        else:
            nodes.extend(node.children)
    return found
