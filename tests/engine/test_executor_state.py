"""The calls of one message: what each sees of what those before it changed."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

from inline_snapshot import snapshot

from ferrule.core.calls import Status
from ferrule.core.context import ToolContext
from ferrule.core.effects import ChangesState, Effects, ReadsPath, ReadsState
from ferrule.core.ports import Proposal
from ferrule.core.state import StateSet
from ferrule.core.tool import Result
from ferrule.core.verdicts import Verdict
from ferrule.host.files.local_paths import LocalPaths
from ferrule.testing import FixedJudge, allow, deny
from ferrule.tools.read import Read
from tests.requirement import requirement

from .bodies import Held, moves, reading, writing
from .stage import Act, Given, call, stage, steps, text_of


@requirement("SCHED-3")
async def test_undeclared_changes_of_state_are_made_in_the_models_order_whatever_finished_first() -> None:
    gates = {name: asyncio.Event() for name in "123"}

    async def body(input: Given, ctx: ToolContext) -> Result[None]:
        await gates[ctx.call_id].wait()
        return Result(None, changes=(StateSet("last", ctx.call_id),))

    at = stage(Act(body=body))
    executor = at.executor()
    seen: list[Any] = []
    async with asyncio.timeout(5), executor:
        for id in "123":
            executor.submit(call("Act", id))
        executor.message_complete()
        for id in "321":
            gates[id].set()
            await steps(10)
            seen.append(at.session.state.values.get("last"))
        await executor.drain()

    assert seen == [None, None, "3"]


@requirement("SCHED-3", "CON-17")
async def test_changes_made_inside_of_a_call_keep_the_place_of_the_outermost() -> None:
    let = asyncio.Event()

    async def slow(input: Given, ctx: ToolContext) -> Result[None]:
        await let.wait()
        return Result(None, changes=(StateSet("last", "first"),))

    async def outer(input: Given, ctx: ToolContext) -> None:
        await ctx.invoke("Inner", {})
        let.set()

    async def inner(input: Given, ctx: ToolContext) -> Result[None]:
        return Result(None, changes=(StateSet("last", "second"),))

    at = stage(Act("Slow", slow), Act("Outer", outer), Act("Inner", inner))
    async with asyncio.timeout(5):
        await at.run(call("Slow", "1"), call("Outer", "2"))

    assert at.session.state.values == {"last": "second"}


async def where(input: Given, ctx: ToolContext) -> str:
    return f"{ctx.cwd} {input.path}"


MOVE = Act("Move", moves, effects=Effects.of(ChangesState("cwd")))


@requirement("SCHED-3", "CON-8")
async def test_a_later_call_sees_the_working_directory_an_earlier_one_left() -> None:
    judge = FixedJudge(allow())
    at = stage(MOVE, Act("Where", where, effects=reading), judges=[judge])

    outcomes = await at.run(
        call("Where", "1", path="a"),
        call("Move", "2", path="sub"),
        call("Where", "3", path="a"),
        call("Move", "4", path="deeper"),
        call("Where", "5", path="a"),
    )

    assert [text_of(outcome) for outcome in outcomes] == snapshot(
        [
            "/project /project/a",
            "moved",
            "/project/sub /project/sub/a",
            "moved",
            "/project/sub/deeper /project/sub/deeper/a",
        ]
    )
    judged = {proposal.call.id: proposal.effects for proposal in judge.seen}
    assert judged["3"] == Effects.of(ReadsPath("/project/sub/a", "/project/sub/a"))


@requirement("SCHED-3")
async def test_a_change_that_was_declared_is_there_when_the_next_call_runs() -> None:
    async def sets(input: Given, ctx: ToolContext) -> Result[None]:
        await asyncio.sleep(0)
        return Result(None, changes=(StateSet("todo", input.text),))

    async def gets(input: Given, ctx: ToolContext) -> Any:
        return at.session.state.values.get("todo")

    held = Held()
    at = stage(
        Act("Slow", held),
        Act("Set", sets, effects=Effects.of(ChangesState("todo"))),
        Act("Get", gets, effects=Effects.of(ReadsState("todo"))),
    )
    executor = at.executor()
    async with asyncio.timeout(5), executor:
        for each in (call("Slow", "0"), call("Set", "1", text="a"), call("Get", "2"), call("Set", "3", text="b")):
            executor.submit(each)
        executor.message_complete()
        await steps(20)
        early = executor.outcomes()[2].output
        held.let.set()
        await executor.drain()

    assert early == "a"
    assert at.session.state.values == {"todo": "b"}


class Links(Act):
    """Makes a symbolic link: the text says where to."""

    def __init__(self) -> None:
        super().__init__("Link", self._make, effects=writing)

    async def _make(self, input: Given, ctx: ToolContext) -> None:
        await asyncio.sleep(0)
        os.symlink(input.text, input.path or "")


@requirement("SCHED-3", "SCHED-5")
async def test_a_read_through_a_link_is_judged_on_the_world_the_call_before_it_left(tmp_path: Path) -> None:
    secret = tmp_path / "ssh" / "id_rsa"
    secret.parent.mkdir()
    secret.write_text("the key")
    workspace = tmp_path / "workspace"
    workspace.mkdir()

    class KeepsSecrets:
        def judge(self, proposal: Proposal, /) -> Verdict:
            touched = [touch.real for touch in proposal.effects.reads]
            return deny("it reads a secret") if str(secret) in touched else allow()

    at = stage(Links(), Read(), judges=[KeepsSecrets()], paths=LocalPaths(), cwd=str(workspace))
    made, read = await at.run(
        call("Link", "1", path="d", text=str(secret.parent)), call("Read", "2", file_path="d/id_rsa")
    )

    assert made.status is Status.OK
    assert (read.status, text_of(read)) == (Status.DENIED, "Read was not allowed: it reads a secret.")
    assert read.record is not None
    assert read.record.effects == Effects.of(ReadsPath(f"{workspace}/d/id_rsa", str(secret), (str(workspace / "d"),)))
