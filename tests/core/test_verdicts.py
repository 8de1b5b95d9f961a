"""How several opinions become one, and what a tool may say of its own call."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from ferrule.app.build import Settings, open_session
from ferrule.core.calls import Status, ToolCall
from ferrule.core.content import Text
from ferrule.core.context import ToolContext
from ferrule.core.inputs import ToolInput
from ferrule.core.tool import Tool
from ferrule.core.verdicts import NO_OPINION, Behavior, Confinement, Source, Verdict, strictest
from ferrule.permissions.modes import Mode
from ferrule.testing import FixedJudge, allow, deny, run_call
from tests.requirement import requirement

_sources: st.SearchStrategy[Source] = st.sampled_from(["rule", "mode", "tool", "hook", "classifier", "user"])
_opinions = st.none() | st.builds(
    lambda behavior, source: Verdict(behavior=behavior, source=source, reason="because"),
    st.sampled_from(Behavior),
    _sources,
)


@requirement("PERM-1")
@given(st.lists(_opinions, max_size=6), _opinions)
def test_one_more_opinion_never_loosens_a_spoken_verdict(opinions: list[Verdict | None], more: Verdict | None) -> None:
    before = strictest(opinions)
    after = strictest([*opinions, more])

    assert before is NO_OPINION or after.behavior >= before.behavior


@requirement("PERM-1")
@given(st.lists(_opinions, max_size=6), st.randoms())
def test_the_order_of_opinions_does_not_matter(opinions: list[Verdict | None], random: object) -> None:
    shuffled = list(opinions)
    random.shuffle(shuffled)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]

    assert strictest(shuffled).behavior is strictest(opinions).behavior


@requirement("CON-16")
@given(st.lists(_opinions, max_size=6))
def test_a_tool_that_allows_itself_counts_for_nothing(opinions: list[Verdict | None]) -> None:
    own = Verdict(behavior=Behavior.ALLOW, source="tool", reason="I am harmless")

    assert strictest([own, *opinions]) == strictest(opinions)


class Nothing(ToolInput):
    pass


class Opinionated(Tool[Nothing, str]):
    """Judge its own call."""

    name = "Opinionated"
    input_model = Nothing

    def __init__(self, verdict: Verdict | None) -> None:
        self._verdict = verdict

    async def opinion(self, input: Nothing, ctx: ToolContext) -> Verdict | None:
        return self._verdict

    async def call(self, input: Nothing, ctx: ToolContext) -> str:
        return "done"


@requirement("CON-16")
async def test_a_tool_can_tighten_what_policy_allows(tmp_path: Path) -> None:
    outcome = await run_call(tmp_path, Opinionated(deny("the moon is full")), {}, mode=Mode.BYPASS)

    assert (outcome.status, outcome.content) == (
        Status.DENIED,
        (Text("Opinionated was not allowed: the moon is full."),),
    )


@requirement("CON-16")
async def test_a_tool_cannot_loosen_what_policy_leaves_open(tmp_path: Path) -> None:
    outcome = await run_call(tmp_path, Opinionated(allow("trust me")), {}, mode=Mode.DEFAULT)

    assert outcome.status is Status.DENIED


@requirement("CON-16")
async def test_a_tool_cannot_pass_a_rule_that_denies(tmp_path: Path) -> None:
    settings = Settings(cwd=str(tmp_path), mode=Mode.BYPASS, state_folder=tmp_path / "state")
    session = open_session(settings, tools=[Opinionated(allow())], judges=[FixedJudge(deny("policy says no"))])

    (outcome,) = await session.run([ToolCall("1", "Opinionated", {})])

    assert (outcome.status, outcome.content) == (
        Status.DENIED,
        (Text("Opinionated was not allowed: policy says no."),),
    )


@requirement("CON-16")
def test_only_an_overridden_opinion_is_asked_for() -> None:
    class Silent(Opinionated):
        """Have no opinion of its own."""

        opinion = Tool.opinion  # pyright: ignore[reportAssignmentType]

    assert Opinionated(None).has_opinion
    assert not Silent(None).has_opinion


@requirement("CON-16")
def test_a_tool_leaves_matching_its_rules_to_the_general_matching_unless_it_says_otherwise() -> None:
    assert Opinionated(None).matches("anything", Nothing()) is None


def test_of_two_that_allow_the_one_that_holds_only_in_a_sandbox_counts() -> None:
    plain = Verdict(behavior=Behavior.ALLOW, source="hook", reason="a hook")
    confined = Verdict(behavior=Behavior.ALLOW, source="rule", reason="a rule", needs_confinement=Confinement())

    assert strictest([plain, confined]) is confined
    assert strictest([confined, plain]) is confined
