"""Results of any size."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from ferrule.app.build import Settings, open_session
from ferrule.core.calls import Status, ToolCall, ToolOutcome
from ferrule.core.content import Block, Image, Line, Text
from ferrule.core.context import ToolContext
from ferrule.core.effects import Effects
from ferrule.core.inputs import ToolInput
from ferrule.core.tool import Keep, Tool
from ferrule.engine.budget import MESSAGE_LIMIT, PREVIEW, Budget, clip, text_size
from ferrule.engine.session import Session
from ferrule.host.storage.session_folder import SessionFolder
from ferrule.permissions.modes import Mode
from ferrule.tools.glob import Glob
from ferrule.tools.grep import Grep
from ferrule.tools.read import Read
from tests.requirement import requirement

KEEPS: tuple[Keep, ...] = ("head", "tail", "both")
IMAGE = Image("image/png", "AAAA")
NOTICE = re.compile(r"\[\.\.\. ([\d,]+) characters left out; (.*?) \.\.\.\]", re.DOTALL)


class TellInput(ToolInput):
    index: int = 0


class Tell(Tool[TellInput, tuple[Block, ...]]):
    """Tell one of the results it was made with."""

    name = "Tell"
    input_model = TellInput

    def __init__(self, *results: str | tuple[Block, ...], limit: int | None = 30_000, keep: Keep = "both") -> None:
        self._results = results
        self.result_limit = limit
        self.keep = keep

    def effects(self, input: TellInput, ctx: ToolContext) -> Effects:
        return Effects.of()

    async def call(self, input: TellInput, ctx: ToolContext) -> tuple[Block, ...]:
        result = self._results[input.index]
        return (Text(result),) if isinstance(result, str) else result


def _session(folder: Path, tool: Tell, **settings: Any) -> Session:
    workspace = folder / "workspace"
    workspace.mkdir(exist_ok=True)
    chosen: dict[str, Any] = {"mode": Mode.BYPASS, "state_folder": folder / "state", **settings}
    return open_session(Settings(cwd=str(workspace), **chosen), tools=[tool])


async def _told(folder: Path, tool: Tell, *ids: str, **settings: Any) -> list[ToolOutcome]:
    calls = [ToolCall(call_id, "Tell", {"index": index}) for index, call_id in enumerate(ids or ("call-1",))]
    return await _session(folder, tool, **settings).run(calls)


def _text(outcome: ToolOutcome) -> str:
    block = outcome.content[0]
    assert isinstance(block, Text)
    return block.text


def _saved_to(outcome: ToolOutcome) -> Path:
    assert outcome.record is not None
    assert outcome.record.saved_to is not None
    return Path(outcome.record.saved_to)


def _ends(text: str) -> tuple[str, int, str]:
    """What is kept of the start, how much is left out, what is kept of the end."""
    notice = NOTICE.search(text)
    assert notice is not None
    head, tail = text[: notice.start()], text[notice.end() :]
    return head.removesuffix("\n\n"), int(notice[1].replace(",", "")), tail.removeprefix("\n\n")


# The cut


@requirement("BUD-1", "BUD-3")
@given(
    st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=300),
    st.integers(60, 280),
    st.sampled_from(KEEPS),
)
def test_the_start_the_count_and_the_end_make_up_the_whole(text: str, limit: int, keep: Keep) -> None:
    cut = clip(text, limit, keep, "not kept")

    if len(text) <= limit:
        assert cut == text
    else:
        head, count, tail = _ends(cut)
        assert len(cut) <= limit
        assert (text.startswith(head), text.endswith(tail)) == (True, True)
        assert len(head) + count + len(tail) == len(text)
        assert {"head": tail == "", "tail": head == "", "both": True}[keep]


CLUSTERS = [
    "a",
    "\r\n",
    "e\u0301",
    "o\u0302\u0323\u0308",
    "👩\u200d👩\u200d👧\u200d👦",
    "👍🏽",
    "❤\ufe0f",
    "1\ufe0f\u20e3",
    "कि",
    "ก็",
    "\u1100\u1161\u11a8",
    "🏴\U000e0067\U000e0062\U000e007f",
    "日",
    "x\u20dd",
]


@requirement("BUD-3")
@given(st.lists(st.sampled_from(CLUSTERS), min_size=100, max_size=150), st.integers(50, 99), st.sampled_from(KEEPS))
def test_the_cut_never_splits_what_a_person_sees_as_one_character(clusters: list[str], limit: int, keep: Keep) -> None:
    text = "".join(clusters)
    boundaries = {0}
    for cluster in clusters:
        boundaries.add(max(boundaries) + len(cluster))

    head, _, tail = _ends(clip(text, limit, keep, "not kept"))

    assert len(head) in boundaries
    assert len(text) - len(tail) in boundaries


@requirement("BUD-3")
def test_a_flag_is_not_split_between_its_two_letters() -> None:
    text = "🇩🇪" * 20 + "." * 200 + "🇫🇷" * 20

    head, _, tail = _ends(clip(text, 100, "both", "not kept"))

    assert (len(head) % 2, len(tail) % 2) == (0, 0)


@requirement("BUD-3")
def test_a_character_without_end_is_cut_all_the_same() -> None:
    cut = clip("a" + "\u0301" * 10_000, 100, "both", "not kept")

    assert len(cut) <= 100


@requirement("BUD-1")
def test_a_limit_smaller_than_the_notice_leaves_the_notice() -> None:
    assert clip("x" * 100, 5, "both", "not kept") == snapshot("[... 100 characters left out; not kept ...]")


# Limits


@requirement("BUD-2")
def test_the_limits_of_the_built_in_tools() -> None:
    assert (Read.result_limit, Glob.result_limit, Grep.result_limit) == (100_000, 30_000, 20_000)
    assert Tool.result_limit == 30_000


@requirement("BUD-2", "BUD-1")
@pytest.mark.parametrize("size", [0, 29_999, 30_000])
async def test_a_result_within_its_limit_is_left_alone(tmp_path: Path, size: int) -> None:
    (outcome,) = await _told(tmp_path, Tell("x" * size))

    assert outcome.content == (Text("x" * size),)
    assert outcome.record is not None
    assert (outcome.record.produced_chars, outcome.record.sent_chars, outcome.record.saved_to) == (size, size, None)
    assert not (tmp_path / "state").exists()


@requirement("BUD-1", "BUD-2", "PIPE-6")
async def test_a_result_over_its_limit_is_saved_whole_and_the_model_gets_both_ends(tmp_path: Path) -> None:
    whole = "".join(f"line {number}\n" for number in range(5_000))

    (outcome,) = await _told(tmp_path, Tell(whole), "toolu_1")

    head, count, tail = _ends(_text(outcome))
    saved = _saved_to(outcome)
    assert (saved.name, saved.read_text()) == ("toolu_1.txt", whole)
    assert (whole.startswith(head), whole.endswith(tail), len(head) + count + len(tail)) == (True, True, len(whole))
    assert f"the whole result is in {saved} ...]" in _text(outcome)
    assert len(_text(outcome)) <= 30_000
    assert outcome.record is not None
    assert (outcome.record.produced_chars, outcome.record.sent_chars) == (len(whole), len(_text(outcome)))


@requirement("BUD-1")
@pytest.mark.parametrize(("keep", "ends"), [("head", (True, False)), ("tail", (False, True)), ("both", (True, True))])
async def test_a_tool_chooses_which_end_is_kept(tmp_path: Path, keep: Keep, ends: tuple[bool, bool]) -> None:
    (outcome,) = await _told(tmp_path, Tell("x" * 40_000, keep=keep))

    head, _, tail = _ends(_text(outcome))
    assert (bool(head), bool(tail)) == ends


@requirement("BUD-1")
async def test_settings_go_before_what_the_tool_says(tmp_path: Path) -> None:
    tool = Tell("x" * 5_000, limit=10, keep="head")

    (cut,) = await _told(tmp_path, tool, result_limits={"Tell": 1_000}, result_keep="tail")
    (free,) = await _told(tmp_path, tool, result_limits={"Tell": None})

    head, count, tail = _ends(_text(cut))
    assert (head, 0 < len(tail) < 1_000, count + len(tail)) == ("", True, 5_000)
    assert free.content == (Text("x" * 5_000),)


@requirement("BUD-1")
async def test_a_tool_may_have_no_limit(tmp_path: Path) -> None:
    (outcome,) = await _told(tmp_path, Tell("x" * 150_000, limit=None))

    assert outcome.content == (Text("x" * 150_000),)


@requirement("BUD-1", "BUD-5")
async def test_images_stay_beside_a_text_that_is_cut(tmp_path: Path) -> None:
    (outcome,) = await _told(tmp_path, Tell((Text("a" * 20_000), IMAGE, Text("b" * 20_000))))

    assert outcome.content[1:] == (IMAGE,)
    assert _saved_to(outcome).read_text() == "a" * 20_000 + "\n" + "b" * 20_000


@requirement("BUD-1")
async def test_a_result_of_a_hundred_megabytes_is_saved_and_cut(tmp_path: Path) -> None:
    size = 100 * 1024 * 1024

    (outcome,) = await _told(tmp_path, Tell("x" * size))

    assert (outcome.status, _saved_to(outcome).stat().st_size) == (Status.OK, size)
    assert len(_text(outcome)) <= 30_000


# Where it is saved


@requirement("BUD-1", "BUD-3")
@pytest.mark.parametrize("call_id", ["toolu_1", "../../x", "", "x" * 300, "a/b", "a\0b", "naïve", "a b"])
async def test_the_saved_file_reads_back_without_a_prompt(tmp_path: Path, call_id: str) -> None:
    session = _session(tmp_path, Tell("one\ntwo\n" + "x" * 40_000), mode=Mode.DEFAULT)

    (told,) = await session.run([ToolCall(call_id, "Tell", {})])
    (read,) = await session.run([ToolCall("2", "Read", {"file_path": str(_saved_to(told)), "limit": 2})])

    assert (told.status, read.status) == (Status.OK, Status.OK)
    assert _text(read).startswith("1\tone\n2\ttwo")
    assert (tmp_path / "state" / "sessions") in _saved_to(told).parents


@requirement("BUD-3")
async def test_the_saved_file_of_another_session_asks(tmp_path: Path) -> None:
    (told,) = await _told(tmp_path, Tell("x" * 40_000))
    other = _session(tmp_path, Tell(""), mode=Mode.DEFAULT)

    (read,) = await other.run([ToolCall("1", "Read", {"file_path": str(_saved_to(told))})])

    assert read.status is Status.DENIED


@requirement("BUD-1")
async def test_results_with_the_same_id_are_all_kept(tmp_path: Path) -> None:
    outcomes = await _told(tmp_path, Tell("a" * 40_000, "b" * 40_000), "same", "same")

    assert [_saved_to(outcome).read_text() for outcome in outcomes] == ["a" * 40_000, "b" * 40_000]


@requirement("BUD-1")
async def test_a_result_that_cannot_be_saved_says_so_and_the_call_is_fine(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file where the folder should be")

    (outcome,) = await _told(tmp_path, Tell("x" * 40_000))

    head, count, tail = _ends(_text(outcome))
    assert (outcome.status, len(head) + count + len(tail)) == (Status.OK, 40_000)
    assert "characters left out; the rest could not be saved: Not a directory ...]" in _text(outcome)
    assert outcome.record is not None
    assert outcome.record.saved_to is None


@requirement("BUD-1")
async def test_without_a_folder_the_rest_is_not_kept() -> None:
    fitted = await Budget().fit("1", Tell(limit=100), (Text("x" * 200),))

    assert (fitted.saved_to, fitted.produced, fitted.sent) == (None, 200, text_size(fitted.content))
    assert fitted.content == (
        Text(
            snapshot("""\
xxxxxxxxxxxxxxxxxxxx

[... 160 characters left out; the rest was not kept ...]

xxxxxxxxxxxxxxxxxxxx\
""")
        ),
    )


# All results of one message


def _outcome(call_id: str, text: str) -> ToolOutcome:
    return ToolOutcome(ToolCall(call_id, "Tell", {}), Status.OK, (Text(text),), Line("done"))


@requirement("BUD-6")
async def test_results_that_fit_together_are_left_alone(tmp_path: Path) -> None:
    outcomes = [_outcome("a", "x" * 500), _outcome("b", "y" * 500)]

    assert await Budget(message_limit=1_000).share(outcomes) == outcomes


@requirement("BUD-6")
async def test_the_largest_result_gives_way_first(tmp_path: Path) -> None:
    texts = ["a" * 20_000, "b" * 25_000, "c" * 3_000, "d" * 29_000]

    outcomes = await _told(tmp_path, Tell(*texts), "1", "2", "3", "4", message_limit=30_000)

    assert [len(_text(outcome)) <= PREVIEW for outcome in outcomes] == [False, True, False, True]
    assert [_saved_to(outcomes[index]).read_text() for index in (1, 3)] == [texts[1], texts[3]]
    assert [outcomes[index].content for index in (0, 2)] == [(Text(texts[0]),), (Text(texts[2]),)]
    assert sum(text_size(outcome.content) for outcome in outcomes) <= 30_000


@requirement("BUD-6", "BUD-1")
@pytest.mark.parametrize("keep", KEEPS)
async def test_a_result_cut_twice_still_counts_all_that_is_left_out(tmp_path: Path, keep: Keep) -> None:
    whole = "".join(f"line {number}\n" for number in range(20_000))

    outcomes = await _told(tmp_path, Tell(whole, whole, keep=keep), "1", "2", message_limit=10_000)

    for outcome in outcomes:
        head, count, tail = _ends(_text(outcome))
        assert len(NOTICE.findall(_text(outcome))) == 1
        assert (whole.startswith(head), whole.endswith(tail)) == (True, True)
        assert len(head) + count + len(tail) == len(whole)
        assert _saved_to(outcome).read_text() == whole
    assert [_saved_to(outcome).name for outcome in outcomes] == ["1.txt", "2.txt"]


@requirement("BUD-6")
async def test_the_record_says_what_was_sent_in_the_end(tmp_path: Path) -> None:
    outcomes = await _told(tmp_path, Tell("a" * 20_000, "b" * 20_000), "1", "2", message_limit=10_000)

    assert [(o.record.produced_chars, o.record.sent_chars) for o in outcomes if o.record] == [
        (20_000, len(_text(outcome))) for outcome in outcomes
    ]


@requirement("BUD-6")
@example(sizes=[2_001] * 3, limit=1)
@given(st.lists(st.integers(0, 20_000), max_size=6), st.integers(1, 60_000))
async def test_sharing_keeps_every_result_in_its_place(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], limit: int
) -> None:
    folder = SessionFolder(tmp_path_factory.mktemp("shared"), "s")
    outcomes = [_outcome(str(index), "x" * size) for index, size in enumerate(sizes)]

    shared = await Budget(spill=folder, message_limit=limit).share(outcomes)

    assert [outcome.call for outcome in shared] == [outcome.call for outcome in outcomes]
    assert all(text_size(s.content) <= text_size(o.content) for s, o in zip(shared, outcomes, strict=True))
    cut = [size for size, s, o in zip(sizes, shared, outcomes, strict=True) if s != o]
    kept = [size for size, s, o in zip(sizes, shared, outcomes, strict=True) if s == o]
    assert not cut or min(cut) >= max((size for size in kept), default=0)
    if sum(text_size(outcome.content) for outcome in shared) > limit:
        assert all(size <= PREVIEW for size in kept)


@requirement("BUD-6")
def test_the_limit_of_a_message() -> None:
    assert MESSAGE_LIMIT == 200_000
