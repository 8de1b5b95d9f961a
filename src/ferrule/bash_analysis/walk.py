"""From a syntax tree to its simple commands, each with the state that it would run in.

The walk is a loop with a list of what is still to do, never a recursion: how
deep a command is nested does not matter. Every branch is taken to be run and
every branch is taken to be skipped; what differs between the two is unknown
afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeAlias

from tree_sitter import Node

from .analysis_budget import AnalysisBudget
from .builtins import after
from .quoting import from_bytes_text
from .runs import ASSIGNMENT, Runs
from .shell_state import ShellState, is_influential, join_states
from .shell_words import Evaluation, Word
from .syntax import SUBSTITUTIONS, Simple, Syntax, substitutions
from .tokens import Token

MAX_UNROLLED = 16

_SEQUENCES = frozenset({"program", "compound_statement", "do_group", "if_statement", "elif_clause", "else_clause"})
_SIMPLE = frozenset({"command", "variable_assignment", "variable_assignments", "declaration_command", "unset_command"})
_REDIRECTS = frozenset({"file_redirect", "herestring_redirect", "heredoc_redirect"})
_STATEMENTS = (
    _SEQUENCES
    | _SIMPLE
    | {"pipeline", "list", "redirected_statement", "subshell", "for_statement", "while_statement", "case_statement"}
    | {"case_item", "function_definition", "negated_command", "test_command"}
)
_MOVING = frozenset({"cd", "pushd", "popd", "eval", ".", "source"})
_SETTING = frozenset(
    {"read", "mapfile", "readarray", "getopts", "printf", "let", "declare", "typeset", "export", "unset"}
)

_Work: TypeAlias = Callable[[], None]


class Walk:
    """The walk over one syntax; `simples` and `doubts` are its result."""

    def __init__(self, syntax: Syntax, state: ShellState, budget: AnalysisBudget) -> None:
        self._budget = budget
        self.simples: list[Simple] = []
        self.doubts: list[str] = []
        self._syntax = syntax
        self._state = self._succeeded = state
        self._work: list[_Work] = []
        self._runs = Runs(syntax, self.doubts, budget)
        self._poison = ""
        self._simple_runs: set[int] = set()
        """Runs that were read as simple commands, with their redirections."""
        self._pipes: tuple[int, ...] = ()
        """The simple commands whose output the next one reads."""

    def run(self) -> None:
        self._enter(self._syntax.root)
        while self._work:
            self._work.pop()()
        if self._poison:
            # A doubt about the whole command too: in a loop, later commands also run earlier.
            self.doubts.append(f"what is left when {self._poison}")
        if self._runs.left_over():
            self.doubts.append("a part that belongs to no command")

    # The parts of the grammar. Each sets `_state` to the state after it, successful or not, and `_succeeded`
    # to the state after it if it succeeded.

    def _enter(self, node: Node) -> None:
        enter = _ENTERING.get(node.type)
        if enter is None:
            self.doubts.append(f"`{node.type.replace('_', ' ')}`")
        else:
            enter(self, node)

    def compound(self, node: Node) -> None:
        if node.children and node.children[0].type == "((":
            self.doubts.append("arithmetic")
            self._runs.visit(self._run_of(node))
            self._walk_substitutions(node, self._state)
            return
        self.sequence(node)

    def sequence(self, node: Node) -> None:
        """Statements one after the other; one followed by `&` runs in parallel, in a shell of its own."""
        children = node.children
        for index in range(len(children) - 1, -1, -1):
            child = children[index]
            if child.type in _STATEMENTS or child.type in _REDIRECTS:
                beside = index + 1 < len(children) and children[index + 1].type == "&"
                self._work.append(partial(self._apart if beside else self._enter, child))

    def _apart(self, node: Node) -> None:
        """Enters a node whose changes to the shell are lost at its end."""
        self._work.append(partial(self._resume, self._state))
        self._work.append(partial(self._enter, node))

    def _resume(self, state: ShellState) -> None:
        poison = self._state.poison
        self._state = self._succeeded = state.poison_with(poison) if poison else state

    def subshell(self, node: Node) -> None:
        self._work.append(partial(self._resume, self._state))
        self.sequence(node)

    def list_of_two(self, node: Node) -> None:
        children = [child for child in node.children if child.type in _STATEMENTS or child.type in ("&&", "||")]
        if len(children) != 3:
            self.doubts.append("a list of commands")
            self.sequence(node)
            return
        left, operator, right = children
        self._work.append(partial(self._right, operator.type, right))
        self._work.append(partial(self._enter, left))

    def _right(self, operator: str, right: Node) -> None:
        after_left, succeeded = self._state, self._succeeded
        self._work.append(partial(self._after_list, operator, after_left, succeeded))
        self._work.append(partial(self._enter, right))
        if operator == "&&":
            self._state = self._succeeded = succeeded

    def _after_list(self, operator: str, after_left: ShellState, left_succeeded: ShellState) -> None:
        self._state = join_states(after_left, self._state)
        if operator == "||":
            self._succeeded = join_states(left_succeeded, self._succeeded)

    def pipeline(self, node: Node) -> None:
        parts = [child for child in node.children if child.type in _STATEMENTS]
        self._work.append(partial(self._set_pipes, self._pipes))
        for part in reversed(parts):
            self._work.append(partial(self._walk_pipe, part))

    def _walk_pipe(self, part: Node) -> None:
        start = len(self.simples)
        self._work.append(partial(self._extend_pipes, start))
        self._apart(part)

    def _extend_pipes(self, start: int) -> None:
        self._pipes = (*self._pipes, *range(start, len(self.simples)))

    def _set_pipes(self, pipes: tuple[int, ...]) -> None:
        self._pipes = pipes

    def walk_redirected(self, node: Node) -> None:
        """A statement with redirections; those of a simple command are read with it, wherever they are in the tree."""
        redirects = [child for child in node.children if child.type in _REDIRECTS]
        bodies = [child for child in node.children if child.type in _STATEMENTS]
        self._work.append(partial(self._redirects, redirects))
        for body in reversed(bodies):
            is_simple = body.type in _SIMPLE or body.children[0].type == "["
            self._work.append(partial(self.simple, body, node) if is_simple else partial(self._enter, body))

    def redirect(self, node: Node) -> None:
        self._redirects([node])

    def _redirects(self, redirects: Sequence[Node]) -> None:
        state = self._state
        runs = {self._run_of(redirect): redirect.start_byte for redirect in reversed(redirects)}
        for run, start in runs.items():
            if run not in self._simple_runs:
                self._visit_run(run, start)
        for redirect in reversed(redirects):
            if redirect.type == "heredoc_redirect":
                self._here_document(redirect)
            else:
                self._walk_substitutions(redirect, state)

    def _here_document(self, redirect: Node) -> None:
        """The grammar puts the rest of a here-document's line, and its expansions, below it."""
        for child in reversed(redirect.children):
            if child.type in _STATEMENTS:
                # Whether it is joined by `|`, `&&` or `||` is not distinguished: it may or may not run.
                self._work.append(partial(self._perhaps, child))
                self._pipes = (*self._pipes, len(self.simples) - 1) if self.simples else self._pipes
            elif child.type == "heredoc_body":
                self._walk_substitutions(child, self._state)

    def branches(self, node: Node) -> None:
        for child in reversed(node.children):
            if child.type in _STATEMENTS:
                self._work.append(partial(self._perhaps, child))
        if node.type in ("case_item", "case_statement"):
            self._header(node)

    def _perhaps(self, node: Node) -> None:
        before = self._state
        self._work.append(partial(self._join, before))
        self._work.append(partial(self._enter, node))

    def _join(self, before: ShellState) -> None:
        self._state = self._succeeded = join_states(before, self._state)

    def loop(self, node: Node) -> None:
        self._state = self._succeeded = self._state_of_any_round(node, self._state)
        self.branches(node)

    def _state_of_any_round(self, node: Node, state: ShellState) -> ShellState:
        """The state at the beginning of any round: what a round may change is unknown."""
        inside = [token for token in self._syntax.scan.tokens if node.start_byte <= token.start < node.end_byte]
        texts = {"".join(part.text for part in token.parts) for token in inside}
        if texts & _MOVING or state.functions or "()" in self._text(node) or "function" in texts:
            return state.lose_track()
        if texts & _SETTING:
            return state.forget()
        assigned = [found[1] for text in texts if (found := ASSIGNMENT.match(text))]
        return state.forget(*assigned) if assigned else state

    def for_loop(self, node: Node) -> None:
        variable = node.child_by_field_name("variable")
        body = node.child_by_field_name("body")
        if variable is None or body is None or node.children[0].type != "for":
            self.doubts.append("a loop of this kind")
            self.branches(node)
            self._header(node)
            return
        name = self._text(variable)
        values = self._header(node, skip=variable)
        if is_influential(name):
            self._state = self._state.poison_with(f"{name} is set")
            self._note_poison()
        if values and len(values) <= MAX_UNROLLED and all(word.text is not None for word in values):
            rounds = values
        else:
            # A pattern or an unknown word makes more than one round.
            self._state = self._state_of_any_round(node, self._state)
            patterns = [word for word in values if word.pattern]
            rounds = [
                Word(None, word.prefix, pattern=True, source=word.source, glob=word.glob)
                for word in patterns[:MAX_UNROLLED]
            ]
            if not values or len(patterns) < len(values) or len(values) > MAX_UNROLLED:
                rounds = [Word(None, source=f"${name}")]
        for value in reversed(rounds):
            self._work.append(partial(self._perhaps, body))
            self._work.append(partial(self._bind, name, value))

    def _bind(self, name: str, value: Word) -> None:
        self._state = self._succeeded = self._state.assign(name, value)

    def function(self, node: Node) -> None:
        """A function is assumed to be called: its body is analysed from an unknown state."""
        name_node, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        self._runs.visit(self._run_of(node))
        if name_node is None or body is None:
            self.doubts.append("a function of this kind")
            return
        name = self._text(name_node)
        state = self._state
        defined = replace(state, functions=state.functions | {name})
        self._work.append(partial(self._resume, defined))
        redirects = [child for child in node.children if child.type in _REDIRECTS]
        if redirects:
            self._work.append(partial(self._redirects, redirects))
        self._work.append(partial(self._enter, body))
        self._state = self._succeeded = replace(defined.lose_track(), in_function=True)

    def test(self, node: Node) -> None:
        """`[ … ]` is an ordinary command; `[[ … ]]` is not, and evaluates the operands of `-eq` and the like."""
        if node.children[0].type == "[":
            self.simple(node)
            return
        evaluation = self._evaluation()
        words: list[Word] = []
        reached = node.start_byte
        for token in self._syntax.in_order():
            if reached <= token.start < node.end_byte:
                reached = token.end
                self._runs.visit(token.run)
                if not token.operator:
                    words.append(evaluation.value(token.parts, self._source(token)))
        self._finish(evaluation)
        self._walk_substitutions(node, self._state)
        self.simples.append(Simple(tuple(words), (), (), self._state, self._text(node), self._pipes))

    # Simple commands

    def simple(self, node: Node, whole: Node | None = None) -> None:
        """A simple command; `whole` is the node that has its redirections too, which may precede it."""
        state, run = self._state, self._run_of(node)
        self._simple_runs.add(run)
        self._visit_run(run, (whole or node).start_byte)
        self._walk_substitutions(node, state)

    def _visit_run(self, run: int, start: int) -> None:
        simple = self._runs.simple(run, start, self._state, self._pipes)
        if simple is None:
            return
        if not self._budget.simple():
            self._work.clear()
            self.doubts.append("more commands than are looked at")
            return
        self.simples.append(simple)
        self._state, self._succeeded = after(simple, self._state)
        self._note_poison()

    def _header(self, node: Node, skip: Node | None = None) -> list[Word]:
        """The words of `for` and `case` themselves."""
        evaluation = self._evaluation()
        words: list[Word] = []
        for child in node.children:
            if child.type in _STATEMENTS:
                continue
            token = self._syntax.words.get(child.start_byte)
            if token is None or token.operator:
                continue
            self._runs.visit(token.run)
            if child.is_named and child.type != "comment" and child != skip:
                words.extend(evaluation.words(token))
                self._walk_substitutions(child, self._state)
        self._finish(evaluation)
        return words

    def _walk_substitutions(self, node: Node, state: ShellState) -> None:
        """Enters the substitutions of a node's words, each in a shell of its own."""
        if self._syntax.scan.substitutions:
            self._work.extend(partial(self._substitution, inner, state) for inner in substitutions(node))

    def _substitution(self, node: Node, state: ShellState) -> None:
        self._work.append(partial(self._restore, self._state, self._succeeded, self._pipes))
        self._state = self._succeeded = state
        self._pipes = ()
        self.sequence(node)

    def _restore(self, state: ShellState, succeeded: ShellState, pipes: tuple[int, ...]) -> None:
        self._state, self._succeeded, self._pipes = state, succeeded, pipes

    def _note_poison(self) -> None:
        self._poison = self._poison or self._state.poison

    def _evaluation(self) -> Evaluation:
        return Evaluation(self._state.names, self._syntax.text, self._budget)

    def _finish(self, evaluation: Evaluation) -> None:
        self.doubts.extend(evaluation.doubts)

    def _run_of(self, node: Node) -> int:
        token = self._syntax.words.get(node.start_byte)
        return -1 if token is None else token.run

    def _text(self, node: Node) -> str:
        return from_bytes_text(self._syntax.text[node.start_byte : node.end_byte])

    def _text_of(self, token: Token) -> str:
        return self._syntax.text[token.start : token.end]

    def _source(self, token: Token) -> str:
        return from_bytes_text(self._text_of(token))


_ENTERING: dict[str, Callable[[Walk, Node], None]] = {
    **dict.fromkeys(_SIMPLE, Walk.simple),
    **dict.fromkeys(("program", "compound_statement", "do_group"), Walk.compound),
    **dict.fromkeys((*SUBSTITUTIONS, "subshell"), Walk.subshell),
    **dict.fromkeys(("if_statement", "elif_clause", "else_clause", "case_item", "case_statement"), Walk.branches),
    **dict.fromkeys(_REDIRECTS, Walk.redirect),
    "list": Walk.list_of_two,
    "pipeline": Walk.pipeline,
    "redirected_statement": Walk.walk_redirected,
    "while_statement": Walk.loop,
    "for_statement": Walk.for_loop,
    "function_definition": Walk.function,
    "negated_command": Walk.sequence,
    "test_command": Walk.test,
}
"""The handler for each kind of node; any other kind is not understood."""


def walk_syntax(syntax: Syntax, state: ShellState, budget: AnalysisBudget) -> tuple[Sequence[Simple], Sequence[str]]:
    """The simple commands of a syntax in source order, and what could not be followed."""
    walk = Walk(syntax, state, budget)
    walk.run()
    return walk.simples, walk.doubts
