"""The syntax tree of a command, and the check that tree and scan see the same words.

The parser recovers from what it does not understand, and in places differs from
bash. So it is never trusted alone: every word and operator of the tree must be one
of the scan's, and vice versa, and no simple command may extend past a separator.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import tree_sitter_bash
from tree_sitter import Language, Node, Parser

from ..core.values import plain_value
from .quoting import as_bytes_text
from .scan import scan_command
from .shell_state import ShellState
from .shell_words import Word
from .tokens import Scan, Token


@plain_value
class Redirection:
    operator: str
    number: str
    """The file descriptor, or the name in braces that gets one; empty for the default."""
    target: Word


@plain_value
class Simple:
    """Words, assignments before them, redirections, and the state of the shell when it runs."""

    words: tuple[Word, ...]
    assignments: tuple[tuple[str, Word], ...]
    redirections: tuple[Redirection, ...]
    state: ShellState
    source: str
    piped_from: tuple[int, ...] = ()
    """The simple commands before it in its pipeline, by their place in the walk."""


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
"""Nodes that are made of words and operators; every other node is one, or is inside one."""
SUBSTITUTIONS = frozenset({"command_substitution", "process_substitution"})
_SILENT = frozenset({"comment", "heredoc_body", "heredoc_end", "heredoc_content", "\n"})


@plain_value
class Syntax:
    """A parsed command, with the doubts about it."""

    text: str
    """The command as bytes in the form of Latin-1, as positions count."""
    root: Node
    words: Mapping[int, Token]
    """The scan's tokens by where they start."""
    scan: Scan
    doubts: tuple[str, ...]

    def in_order(self) -> list[Token]:
        """The tokens in source order, one that contains others before those."""
        return sorted(self.scan.tokens, key=lambda token: (token.start, -token.end))


def parse_command(command: str) -> Syntax:
    """The syntax of a command. Raises `Unreadable` if it has none."""
    scan = scan_command(command)
    text = as_bytes_text(command)
    root = _parser().parse(text.encode("latin-1")).root_node
    words = {token.start: token for token in scan.tokens}
    doubts = scan.doubts
    if root.has_error:
        doubts = (*doubts, "its grammar")
    elif not doubts and not _agree(root, words, scan):
        doubts = ("where its words end",)
    return Syntax(text, root, words, scan, doubts)


@cache
def _parser() -> Parser:
    return Parser(Language(tree_sitter_bash.language()))


def _agree(root: Node, words: Mapping[int, Token], scan: Scan) -> bool:
    """Whether the tree's words and operators are those of the scan, and each command is within one run."""
    found = 0
    runs: set[int] = set()
    nodes = [root]
    while nodes:
        node = nodes.pop()
        kind = node.type
        is_command = kind == "command"
        of_command: set[int] = set()
        children = node.children
        for child in children[1:-1] if kind in SUBSTITUTIONS else children:
            child_kind = child.type
            if child_kind in STRUCTURES:
                nodes.append(child)
            elif child_kind in _SILENT:
                if child_kind == "heredoc_body":
                    nodes.extend(substitutions(child))
                continue
            else:
                token = words.get(child.start_byte)
                if token is None or token.end != child.end_byte:
                    return False
                found += 1
                if scan.substitutions and child.child_count:
                    nodes.extend(substitutions(child))
            if is_command:
                token = words.get(child.start_byte)
                of_command.add(token.run if token else -1)
        if is_command:
            if len(of_command) != 1 or not of_command.isdisjoint(runs):
                return False
            runs |= of_command
    return found == len(scan.tokens) == len(words)


def substitutions(word: Node) -> list[Node]:
    """The command and process substitutions in a word, without those inside others; as structures to enter."""
    found: list[Node] = []
    nodes = [word]
    while nodes:
        node = nodes.pop()
        if node.type in SUBSTITUTIONS:
            found.append(node)
        else:
            nodes.extend(node.children)
    return found
