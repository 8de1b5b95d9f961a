"""Laws of working on files: nothing that the agent has not seen is lost, whoever else works on them."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ferrule.core.tool import ToolError
from ferrule.host.files.ledger import lines_of
from ferrule.host.files.workfiles import Workfiles
from ferrule.testing import bare_context
from ferrule.tools.edit import Edit, EditInput
from ferrule.tools.write import Write, WriteInput
from tests.host.files.seeing import see, see_lines
from tests.requirement import requirement

WORDS = st.sampled_from(["alpha", "beta", "gamma", "delta"])
TEXTS = st.lists(WORDS, max_size=5).map(lambda words: "".join(f"{word}\n" for word in words))


class OneFile(RuleBasedStateMachine):
    """One file between an agent and others. The model: what the file holds, and each line the agent has seen."""

    @initialize(text=TEXTS)
    def start(self, text: str) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self.path = Path(self._folder.name) / "file.txt"
        self.files = Workfiles()
        self.text: str | None = text
        self.path.write_text(text)
        self.whole: str | None = None
        """What the agent knows to be all of the file."""
        self.seen: set[tuple[int, str]] = set()
        """Every line that it ever saw or wrote, with its number."""
        self.looked = False

    def teardown(self) -> None:
        self._folder.cleanup()

    # Others

    @rule(text=TEXTS)
    def somebody_writes(self, text: str) -> None:
        self.path.write_text(text)
        self.text = text

    @rule(text=TEXTS)
    def somebody_replaces_by_rename(self, text: str) -> None:
        other = self.path.with_name("other")
        other.write_text(text)
        os.replace(other, self.path)
        self.text = text

    @precondition(lambda self: self.text is not None)
    @rule()
    def somebody_touches(self) -> None:
        os.utime(self.path, ns=(0, 0))

    @precondition(lambda self: self.text is not None)
    @rule()
    def somebody_deletes(self) -> None:
        self.path.unlink()
        self.text = None

    # The agent

    @precondition(lambda self: self.text is not None)
    @rule()
    def read(self) -> None:
        see(self.files.ledgers.of("main"), self.path)
        self.whole, self.looked = self.text, True
        self._saw(self.text or "")

    @precondition(lambda self: bool(self.text))
    @rule(data=st.data())
    def read_a_range(self, data: st.DataObject) -> None:
        lines = lines_of(self.text or "")
        first = data.draw(st.integers(1, len(lines)))
        last = data.draw(st.integers(first, len(lines)))
        if (first, last) == (1, len(lines)):
            self.read()
            return
        see_lines(self.files.ledgers.of("main"), self.path, first, last)
        self.looked = True
        self.seen |= set(_numbered(self.text or "")[first - 1 : last])
        if self.whole != self.text:
            self.whole = None

    @rule(text=TEXTS)
    def write(self, text: str) -> None:
        said = self._done(Write(self.files), WriteInput(file_path=str(self.path), content=text))
        if said is None:
            assert self.seen >= set(_numbered(self.text or "")), "a line was overwritten that was never seen"
            assert self.path.read_text() == text
            self.text = self.whole = text
            self._saw(text)
            self.looked = True
        else:
            assert self.text, "a missing or empty file can always be written"
            assert self.whole != self.text, f"known whole, and refused: {said}"

    @rule(old=WORDS, new=WORDS, everywhere=st.booleans())
    def edit(self, old: str, new: str, everywhere: bool) -> None:
        if old == new:
            return
        before = self.text or ""
        input = EditInput(file_path=str(self.path), old_string=old, new_string=new, replace_all=everywhere)
        said = self._done(Edit(self.files), input)
        count = before.count(old)
        if said is None:
            assert self.looked, "what was never seen is not edited"
            assert count == 1 or everywhere
            assert count == 1 or self.seen >= set(_numbered(before)), "many only where all is known"
            self.text = before.replace(old, new)
            self.whole = self.text if self.whole == before else None
            self.seen |= {(n, line) for n, line in _numbered(self.text) if new in line}
        else:
            allowed = self.looked and (count == 1 or (everywhere and count > 1 and self.whole == before))
            assert not allowed, f"seen, and refused: {said}"

    @invariant()
    def the_file_is_as_the_last_success_left_it(self) -> None:
        now = self.path.read_text() if self.path.exists() else None
        assert now == self.text
        assert set(os.listdir(self.path.parent)) <= {"file.txt"}

    def _saw(self, text: str) -> None:
        self.seen |= set(_numbered(text))

    def _done(self, tool: Edit | Write, input: EditInput | WriteInput) -> str | None:
        """The words of the refusal, `None` where it was done."""

        async def go() -> None:
            ctx = bare_context(self.path.parent)
            tool.check(input, ctx)  # type: ignore[arg-type]
            await tool.validate(input, ctx)  # type: ignore[arg-type]
            await tool.call(input, ctx)  # type: ignore[arg-type]

        try:
            asyncio.run(go())
        except ToolError as error:
            return str(error)
        return None


def _numbered(text: str) -> list[tuple[int, str]]:
    return list(enumerate(lines_of(text), 1))


TestOneFile = requirement("FILE-2", "FILE-3", "EDIT-9")(OneFile.TestCase)
TestOneFile.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)

EDITING = """
import asyncio, sys, time
from pathlib import Path
from ferrule.core.calls import Status, ToolCall
from ferrule.app.build import Settings, open_session
from ferrule.permissions.modes import Mode

folder, name = sys.argv[1:]
session = open_session(Settings(cwd=folder, mode=Mode.BYPASS, state_folder=Path(folder) / ".state"))

async def call(tool, **arguments):
    (outcome,) = await session.run([ToolCall("1", tool, {"file_path": "shared.txt", **arguments})])
    return outcome.status is Status.OK

async def main():
    look = {"pattern": name, "path": "shared.txt", "output_mode": "content"}
    (seen,) = await session.run([ToolCall("0", "Grep", look)])
    assert seen.status is Status.OK
    print("ready", flush=True)
    sys.stdin.readline()
    end, done = time.monotonic() + 1, 0
    while time.monotonic() < end:
        done += await call("Edit", old_string=f"{name}={done};", new_string=f"{name}={done + 1};")
    print(done, flush=True)

asyncio.run(main())
"""


@requirement("FILE-7")
def test_of_two_processes_that_edit_one_file_for_a_second_every_success_is_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "shared.txt"
    path.write_text("left=0;\n\nright=0;\n")
    children = [
        subprocess.Popen(
            [sys.executable, "-c", EDITING, str(tmp_path), name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in ("left", "right")
    ]
    for child in children:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"

    counts = [child.communicate("go\n", timeout=100)[0] for child in children]

    left, right = (int(count) for count in counts)
    assert left > 0
    assert right > 0
    assert path.read_text() == f"left={left};\n\nright={right};\n"
