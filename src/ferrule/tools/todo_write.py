"""Keep the list of tasks."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ..core.content import Block, Text, Todo, TodoItem, View
from ..core.context import ToolContext
from ..core.effects import ChangesState, Effects
from ..core.inputs import ToolInput
from ..core.state import StateSet
from ..core.tool import Result, ToolError, load_guide
from ..core.values import plain_value
from . import BuiltinTool

TODOS = "todos"
"""The state key of the list: a tuple of mappings with the names of the input, so that it can be saved as JSON."""
MOST = 200


class TodoInput(ToolInput):
    content: str = Field(min_length=1, max_length=1000, description="What to do, in the imperative.")
    status: Literal["pending", "in_progress", "completed"] = Field(description="Its status.")
    active_form: str = Field(
        default="", alias="activeForm", max_length=1000, description="The same in the present continuous."
    )


class TodoWriteInput(ToolInput):
    todos: list[TodoInput] = Field(max_length=MOST, description="The whole list, in the order of the work.")


@plain_value
class TodoList:
    items: tuple[TodoItem, ...]

    def count(self, state: str) -> int:
        return sum(item.state == state for item in self.items)


class TodoWrite(BuiltinTool[TodoWriteInput, TodoList]):
    name = "TodoWrite"
    description = load_guide(__file__)
    hint = "keep a list of tasks"
    input_model = TodoWriteInput

    def effects(self, input: TodoWriteInput, ctx: ToolContext) -> Effects:
        return Effects.of(ChangesState(TODOS))

    def check(self, input: TodoWriteInput, ctx: ToolContext) -> None:
        running = [todo.content for todo in input.todos if todo.status == "in_progress"]
        if len(running) > 1:
            named = " and ".join(f"`{_short(content)}`" for content in running[:3])
            raise ToolError(
                f"{len(running)} tasks are in progress, among them {named}. Keep one, and set the others to `pending`."
            )
        if not running and any(todo.status == "pending" for todo in input.todos):
            raise ToolError("Tasks are open and none is in progress. Set the one you are working on to `in_progress`.")

    async def call(self, input: TodoWriteInput, ctx: ToolContext) -> Result[TodoList]:
        saved = tuple(todo.model_dump(by_alias=True) for todo in input.todos)
        return Result(TodoList(_items(input)), changes=(StateSet(TODOS, saved),))

    def to_model(self, output: TodoList) -> tuple[Block, ...]:
        if not output.items:
            return (Text("The list is empty now."),)
        done, open_ones = output.count("completed"), len(output.items) - output.count("completed")
        current = next((item.text for item in output.items if item.state == "in_progress"), None)
        now = f" In progress: {_short(current)}." if current else ""
        return (Text(f"The list is saved: {done} completed, {open_ones} open.{now}"),)

    def describe(self, input: TodoWriteInput) -> str:
        return f"TodoWrite {len(input.todos)} tasks"

    def show_call(self, input: TodoWriteInput) -> View:
        return Todo(_items(input))

    def show_result(self, input: TodoWriteInput, output: TodoList) -> View:
        return Todo(output.items)


def _items(input: TodoWriteInput) -> tuple[TodoItem, ...]:
    return tuple(
        TodoItem(todo.active_form if todo.active_form and todo.status == "in_progress" else todo.content, todo.status)
        for todo in input.todos
    )


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 80 else f"{line[:79]}…"
