"""Skills: found by name, read when used, and never more than the rules allow."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ferrule.core.calls import Status, ToolCall, ToolOutcome
from ferrule.core.content import plain_text
from ferrule.engine.session import Session
from ferrule.permissions.modes import Mode
from ferrule.providers.scripted import says
from ferrule.skills.skill_catalog import Skills
from tests.agents.cast import Cast, opened, played
from tests.agents.test_agent_files import pages, put
from tests.requirement import requirement

HEAD = "---\ndescription: Greets people.\n{}---\n"


def _skill(root: Path, name: str, body: str, head: str = "", place: str = "project/.claude") -> Path:
    return put(root / place / "skills" / name / "SKILL.md", HEAD.format(head) + body)


def _session(root: Path, *, trusted: bool = True, mode: Mode = Mode.BYPASS, **more: Any) -> Session:
    return opened(root / "project", settings={"pages": pages(root, trusted=trusted), "mode": mode}, **more)


async def _used(session: Session, skill: str, args: str = "") -> ToolOutcome:
    (outcome,) = await session.run([ToolCall("1", "Skill", {"skill": skill, "args": args})])
    return outcome


async def _text(session: Session, skill: str, args: str = "") -> str:
    return plain_text((await _used(session, skill, args)).content)


# Which there are


@requirement("TASK-2")
def test_a_users_own_skill_goes_before_the_folders_and_a_skill_before_a_command(tmp_path: Path) -> None:
    _skill(tmp_path, "greet", "from the folder")
    _skill(tmp_path, "greet", "from the user", place="home/.claude")
    put(tmp_path / "project/.claude/commands/greet.md", "from a command")
    put(tmp_path / "project/.claude/commands/web/deploy.md", "# Deploy the site\nDo it.")
    _skill(tmp_path, "shared", "for all programs", place="project/.agents")
    skills = Skills(pages(tmp_path))

    assert sorted(skills.all) == ["greet", "shared", "web:deploy"]
    assert skills.all["greet"].body == "from the user"
    assert skills.all["web:deploy"].description == "Deploy the site"


@requirement("TASK-2")
def test_only_names_and_descriptions_are_listed_within_the_budget(tmp_path: Path) -> None:
    for number in range(40):
        head = f"---\ndescription: {'long ' * 100}\n---\n"
        put(tmp_path / f"project/.claude/skills/skill-{number:02}/SKILL.md", f"{head}the whole text")
    _skill(tmp_path, "hidden", "x", "disable-model-invocation: true\n")
    _skill(tmp_path, "later", "x", "paths: '*.vue'\n")
    skills = Skills(pages(tmp_path))

    listed, short = skills.list_for_model(), skills.list_for_model(200)

    assert len(listed) <= 8000
    assert len(short) <= 260
    assert "- skill-00: long" in listed
    assert "- skill-39: long" in listed
    assert "whole text" not in listed
    assert "hidden" not in listed
    assert "later" not in listed
    assert short.splitlines()[-1].endswith("more, which can be used by name")


@requirement("TASK-2")
@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("x", "---\nname: x\n", "its head has no end"),
        ("x", "---\na: &a [*a]\n---\n", "it has neither a `description` nor a text"),
        ("x", "# \n", "it has neither a `description` nor a text"),
        ("x", "y" * 2_000_000, "it has more than"),
        ("odd name", HEAD.format("") + "x", "is not a valid name"),
        ("a\nb", HEAD.format("") + "x", "is not a valid name"),
    ],
)
def test_a_bad_skill_is_skipped_with_a_warning(tmp_path: Path, name: str, text: str, words: str) -> None:
    put(tmp_path / "project/.claude/skills" / name / "SKILL.md", text)
    _skill(tmp_path, "good", "x")
    skills = Skills(pages(tmp_path))

    assert list(skills.all) == ["good"]
    assert len(skills.warnings) == 1
    assert words in skills.warnings[0]


@requirement("TASK-2")
@pytest.mark.parametrize("head", ["", "---\nname: x\n---\n", "---\nallowed-tools: *\n---\n"])
def test_a_skill_without_a_description_is_described_by_its_first_line(tmp_path: Path, head: str) -> None:
    put(tmp_path / "project/.claude/skills/x/SKILL.md", f"{head}\n## Makes tea\n\nBoil water.")

    assert Skills(pages(tmp_path)).all["x"].description == "Makes tea"


@requirement("TASK-2")
async def test_a_head_that_is_not_quite_yaml_keeps_what_it_allows_and_what_it_demands(tmp_path: Path) -> None:
    broken = "---\nallowed-tools: *\ndescription: Greets: all\n---\nHello."
    put(tmp_path / "project/.claude/commands/greet.md", broken)
    hooked = "---\ndescription: x: y\nhooks:\n  PreToolUse:\n   - command: *\n---\nHello."
    put(tmp_path / "project/.claude/commands/hooked.md", hooked)
    session = _session(tmp_path)

    assert "Hello." in await _text(session, "greet")
    assert (await _used(session, "hooked")).status is not Status.OK
    assert Skills(pages(tmp_path, trusted=True)).all["greet"].allowed == ("*",)


def test_plain_heads_are_read_without_the_yaml_library(tmp_path: Path) -> None:
    for number in range(3):
        _skill(tmp_path, f"s{number}", "x", "allowed-tools: Read, Bash(git log:*)\nmodel: sonnet\n")
    put(tmp_path / "project/.claude/agents/a.md", "---\nname: a\ndescription: >\n  Folded\n  text\n---\nDo it.")
    program = (
        "import sys; from pathlib import Path; from tests.agents.test_agent_files import pages;"
        "from ferrule.skills.skill_catalog import Skills; from ferrule.agents.agent_catalog import Agents;"
        f"sys.modules.pop('yaml', None); of = pages(Path({str(tmp_path)!r}));"
        "print(len(Skills(of).all), 'a' in Agents(of).all, 'yaml' in sys.modules)"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, timeout=60)

    assert done.stdout.split() == [b"3", b"True", b"False"]


def test_a_link_out_of_the_folder_is_skipped_and_one_inside_is_followed_once(tmp_path: Path) -> None:
    secret = put(tmp_path / "secret.md", HEAD.format("") + "private")
    _skill(tmp_path, "real", "x")
    folder = tmp_path / "project/.claude/skills"
    (folder / "same").symlink_to(folder / "real")
    (folder / "out").mkdir()
    (folder / "out/SKILL.md").symlink_to(secret)
    (folder / "pipe").mkdir()
    os.mkfifo(folder / "pipe/SKILL.md")
    skills = Skills(pages(tmp_path))

    assert list(skills.all) == ["real"]
    assert ["out/SKILL.md" in warning or "pipe/SKILL.md" in warning for warning in skills.warnings] == [True, True]


@requirement("READ-11", "TASK-2")
def test_a_file_that_is_read_makes_known_the_skills_for_its_path(tmp_path: Path) -> None:
    _skill(tmp_path, "vue", "x", "paths: '*.vue, web/**/*.ts'\n")
    _skill(tmp_path, "any", "x")
    skills = Skills(pages(tmp_path))
    workspace = str(tmp_path / "project")

    def known(path: str) -> list[str]:
        return [skill.name for skill in skills.find_for_file(f"{workspace}/{path}", workspace)]

    assert known("deep/a.vue") == known("web/x/y.ts") == ["vue"]
    assert known("a.ts") == known("../a.vue") == []


# Its text


@requirement("TASK-2")
@pytest.mark.parametrize(
    ("body", "args", "text"),
    [
        ("Hello $ARGUMENTS!", "big world", "Hello big world!"),
        ("$0 and $1 and $7", "'one two' three", "one two and three and"),
        ("$ARGUMENTS[1]", "a b", "b"),
        ("$who greets $whom.", "Ann", "Ann greets ."),
        (r"costs \$5, $HOME stays", "x", "costs $5, $HOME stays\n\nARGUMENTS: x"),
        ("Nothing to fill.", "it", "Nothing to fill.\n\nARGUMENTS: it"),
        ("Say '$0'", "it's", "Say 'it's'"),
    ],
)
async def test_arguments_take_their_places(tmp_path: Path, body: str, args: str, text: str) -> None:
    _skill(tmp_path, "greet", body, "arguments: [who, whom]\n")

    said = await _text(_session(tmp_path), "/greet", args)

    folder = tmp_path / "project/.claude/skills/greet"
    assert said == f'<skill name="greet" folder="{folder}">\n{text}\n</skill>'


@requirement("TASK-2")
async def test_commands_are_replaced_by_what_they_print_and_files_are_read(tmp_path: Path) -> None:
    put(tmp_path / "project/notes.txt", "remember the milk\n")
    body = "Now: !`echo $0-$((1+1))`\n\n```!\necho from a block\n```\nSee @notes.txt, not `@code` nor @nowhere."
    _skill(tmp_path, "look", body)
    session = _session(tmp_path)

    said = await _text(session, "look", "x")

    assert "Now: x-2\n" in said
    assert "\nfrom a block\n" in said
    assert "remember the milk" in said
    await session.close()


@requirement("TASK-2")
async def test_neither_an_argument_nor_output_becomes_a_command(tmp_path: Path) -> None:
    _skill(tmp_path, "say", "$ARGUMENTS and !`cat bad.txt`")
    put(tmp_path / "project/bad.txt", "!`touch owned`")
    session = _session(tmp_path)

    said = await _text(session, "say", "!`touch owned`")

    assert said.count("!`touch owned`") == 2
    assert not (tmp_path / "project/owned").exists()
    await session.close()


@requirement("TASK-2")
async def test_a_command_that_rules_refuse_or_that_fails_ends_the_skill(tmp_path: Path) -> None:
    _skill(tmp_path, "makes", "!`touch made.txt`")
    _skill(tmp_path, "fails", "!`exit 3`")
    session = _session(tmp_path, mode=Mode.DEFAULT)
    free = _session(tmp_path)

    refused, failed = await _used(session, "makes"), await _used(free, "fails")

    assert (refused.status, failed.status) == (Status.FAILED, Status.FAILED)
    assert "`touch made.txt` failed: Bash was not allowed" in plain_text(refused.content)
    assert "Exit code 3" in plain_text(failed.content)
    assert not (tmp_path / "project/made.txt").exists()
    await free.close()


@requirement("TASK-2")
async def test_what_a_skill_allows_holds_while_it_is_read_and_until_the_turn_ends(tmp_path: Path) -> None:
    _skill(tmp_path, "maker", "!`mkdir first`", "allowed-tools: Bash(mkdir *)\n")
    session = _session(tmp_path, mode=Mode.DEFAULT)
    again = ToolCall("2", "Bash", {"command": "mkdir second"})
    later = ToolCall("3", "Bash", {"command": "mkdir third"})
    model = Cast(
        main=[
            says("", ToolCall("1", "Skill", {"skill": "maker"})),
            says("", again, ToolCall("4", "Bash", {"command": "touch other"})),
            says(""),
            says("", later),
            says(""),
        ],
    )

    first = await played(session, model)
    second = (await played(session, model))[len(first) :]

    assert sorted(path.name for path in (tmp_path / "project").iterdir() if path.is_dir()) == [
        ".claude",
        "first",
        "second",
    ]
    assert "was not allowed" in first[-1]
    assert "was not allowed" in second[0]
    await session.close()


@requirement("TASK-2")
async def test_a_skill_of_a_folder_that_nobody_trusts_allows_and_runs_nothing(tmp_path: Path) -> None:
    _skill(tmp_path, "maker", "!`mkdir first`", "allowed-tools: Bash(mkdir *)\n")
    _skill(tmp_path, "grants", "words", "allowed-tools: Bash(mkdir *)\n")
    session = _session(tmp_path, trusted=False, mode=Mode.DEFAULT)

    refused = await _text(session, "maker")
    outcomes = await session.run(
        [ToolCall("1", "Skill", {"skill": "grants"}), ToolCall("2", "Bash", {"command": "mkdir second"})]
    )

    assert "its folder is not trusted" in refused
    assert [outcome.status for outcome in outcomes] == [Status.OK, Status.DENIED]


@requirement("TASK-2")
async def test_what_a_skill_disallows_is_denied_for_the_turn(tmp_path: Path) -> None:
    _skill(tmp_path, "careful", "words", "disallowed-tools: Write\n")
    session = _session(tmp_path)
    write = ToolCall("2", "Write", {"file_path": "a.txt", "content": "x"})

    outcomes = [*await session.run([ToolCall("1", "Skill", {"skill": "careful"})]), *await session.run([write])]

    assert [outcome.status for outcome in outcomes] == [Status.OK, Status.DENIED]


@requirement("TASK-2")
async def test_a_skill_that_forks_is_carried_out_by_an_agent_with_what_it_allows(tmp_path: Path) -> None:
    _skill(tmp_path, "forked", "task: make $0", "context: fork\nallowed-tools: Bash(mkdir *)\n")
    session = _session(tmp_path, mode=Mode.DEFAULT)
    model = Cast(
        main=[says("", ToolCall("1", "Skill", {"skill": "forked", "args": "it"})), says("")],
        task=[says("", ToolCall("b", "Bash", {"command": "mkdir it"})), says("Made.")],
    )

    (said,) = await played(session, model)

    assert "<agent_report>\nMade.\n</agent_report>" in said
    assert (tmp_path / "project/it").is_dir()
    assert session.state.values == {}
    await session.close()


@requirement("TASK-2")
async def test_a_change_of_the_file_counts_at_the_next_use(tmp_path: Path) -> None:
    path = _skill(tmp_path, "greet", "old")
    session = _session(tmp_path)
    before = await _text(session, "greet")

    path.write_text(HEAD.format("") + "new")

    assert ("old" in before, "new" in await _text(session, "greet")) == (True, True)


@pytest.mark.parametrize(
    ("skill", "words"),
    [("nope", "No skill is named nope. Available: mine."), ("mine", "Only a person may use the skill mine.")],
)
async def test_a_skill_that_cannot_be_used_is_refused(tmp_path: Path, skill: str, words: str) -> None:
    _skill(tmp_path, "mine", "x", "disable-model-invocation: true\n")

    assert words in await _text(_session(tmp_path), skill)


def test_without_skills_the_tool_is_off(tmp_path: Path) -> None:
    found = _session(tmp_path).registry.pool

    assert found.off["Skill"] == "no skills are available"
