"""The reference servers from npm, which other people test their clients with."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import tempfile
from base64 import b64decode
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from ferrule.app.build import Settings, open_session
from ferrule.core.calls import Status
from ferrule.core.content import Image
from ferrule.core.ports import Answer, Question, Unanswered
from ferrule.engine.session import Session
from ferrule.mcp.config import Stdio
from ferrule.mcp.server_connection import ServerConnection
from ferrule.mcp.server_context import ServerTrouble
from ferrule.permissions.modes import Mode
from tests.mcp.running import HANG, config, connected, nothing, run, text_of, until, words
from tests.mcp.servers.raw import PNG
from tests.requirement import requirement

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

CACHE = Path(os.environ.get("FERRULE_CONFORMANCE_CACHE") or Path.home() / ".cache" / "ferrule-conformance")
VERSION = "2026.8.31"
SERVERS = ("server-everything", "server-filesystem")


@pytest.fixture(scope="session")
def npm() -> Path:
    """The folder of the installed servers. They are installed once, and kept."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("there is no node, or no npm")
    folder = CACHE / f"servers-{VERSION}"
    if not folder.is_dir():
        CACHE.mkdir(parents=True, exist_ok=True)
        draft = tempfile.mkdtemp(dir=CACHE)
        packages = [f"@modelcontextprotocol/{name}@{VERSION}" for name in SERVERS]
        command = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", draft, *packages]
        done = subprocess.run(command, capture_output=True, check=False, timeout=500)
        if done.returncode:
            shutil.rmtree(draft)
            pytest.skip(f"npm could not install them: {done.stderr.decode(errors='replace')[-300:]}")
        try:
            os.rename(draft, folder)
        except OSError:  # somebody else was quicker
            shutil.rmtree(draft)
    return folder / "node_modules" / "@modelcontextprotocol"


def program(npm: Path, name: str, *arguments: str) -> Stdio:
    return Stdio("node", (str(npm / name / "dist" / "index.js"), *arguments))


class Person:
    """Chooses the last that is offered, writes the number seven, and says nothing where told so."""

    def __init__(self, *, silent: bool = False) -> None:
        self.asked: list[Question] = []
        self._silent = silent

    async def ask(self, questions: tuple[Question, ...], /, *, asker: str) -> tuple[Answer, ...] | Unanswered:
        self.asked += questions
        return tuple(self._answer(question) for question in questions)

    def _answer(self, question: Question) -> Answer:
        if self._silent and "legal name" not in question.text:
            return Answer()
        return Answer(chosen=(question.choices[-1].label,)) if question.choices else Answer(text="7")


@asynccontextmanager
async def everything(npm: Path, folder: Path, person: Person | None = None) -> AsyncGenerator[ServerConnection]:
    transport = program(npm, "server-everything", "stdio")
    async with connected(folder, transport, questioner=person, roots=(folder.as_uri(),)) as server:
        yield server


@asynccontextmanager
async def working(npm: Path, folder: Path, name: str, *arguments: str) -> AsyncGenerator[Session]:
    server = config(program(npm, name, *arguments), "it")
    settings = Settings(cwd=str(folder), mode=Mode.BYPASS, state_folder=folder / ".state", servers=(server,))
    async with open_session(settings) as session:
        await session.settled(HANG)
        yield session


@requirement("MCP-1", "BUD-5")
async def test_results_of_every_kind_come_as_what_they_are(npm: Path, tmp_path: Path) -> None:
    async with working(npm, tmp_path, "server-everything", "stdio") as session:
        summed = await run(session, "mcp__it__get-sum", {"a": 2, "b": 40})
        picture = await run(session, "mcp__it__get-tiny-image")
        annotated = await run(session, "mcp__it__get-annotated-message", {"messageType": "error", "includeImage": True})
        structured = await run(session, "mcp__it__get-structured-content", {"location": "Chicago"})
        links = await run(session, "mcp__it__get-resource-links", {"count": 2})
        blob = await run(session, "mcp__it__get-resource-reference", {"resourceType": "Blob", "resourceId": 1})
        zipped = await run(
            session,
            "mcp__it__gzip-file-as-resource",
            {"name": "a.gz", "data": "data:text/plain,hello", "outputType": "resource"},
        )
        wrong = await run(session, "mcp__it__get-structured-content", {"location": "Bern"})

    assert words(summed) == "The sum of 2 and 40 is 42."
    assert [isinstance(block, Image) for block in picture.content] == [False, True, False]
    assert [isinstance(block, Image) for block in annotated.content] == [False, True]
    assert words(structured) == '{"temperature":36,"conditions":"Light rain / drizzle","humidity":82}'
    assert "demo://resource/dynamic/text/2]" in words(links)
    assert "[demo://resource/dynamic/blob/1]\nResource 1: This is a base64 blob" in words(blob)
    assert "[application/gzip, " in words(zipped)
    assert (wrong.status, "'Bern' is not one of" in words(wrong)) == (Status.INVALID, True)


@requirement("MCP-1")
async def test_progress_is_heard_and_a_call_can_be_cancelled(npm: Path, tmp_path: Path) -> None:
    heard: list[tuple[float, float | None]] = []

    async def listen(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, total))

    async with everything(npm, tmp_path) as server:
        await server.call("trigger-long-running-operation", {"duration": 0.3, "steps": 3}, listen)
        call = asyncio.ensure_future(server.call("trigger-long-running-operation", {"duration": 3600}, nothing))
        await text_of(server, "echo", {"message": "behind it"})
        call.cancel()
        await asyncio.wait((call,), timeout=HANG)
        after = await text_of(server, "echo", {"message": "still there"})

    assert heard == [(1, 3), (2, 3), (3, 3)]
    assert (call.cancelled(), after) == (True, "Echo: still there")


@requirement("MCP-1")
async def test_a_form_is_put_to_the_person(npm: Path, tmp_path: Path) -> None:
    person = Person()
    async with everything(npm, tmp_path, person) as server:
        answer = await text_of(server, "trigger-elicitation-request")

    assert "User provided the requested information" in answer
    assert '"titledMultipleSelectEnum": [\n      "fish-3"\n    ]' in answer
    assert '"legacyTitledEnum": "pet-5"' in answer
    assert '"integer": 7' in answer
    assert person.asked[2].text.endswith("Favorite first line of a story [It was a dark and stormy night.]")


@requirement("MCP-1")
async def test_where_the_person_says_nothing_the_default_counts(npm: Path, tmp_path: Path) -> None:
    async with everything(npm, tmp_path, Person(silent=True)) as server:
        answer = await text_of(server, "trigger-elicitation-request")

    assert '"integer": 42' in answer
    assert '"untitledMultipleSelectEnum": [\n      "Guitar"\n    ]' in answer
    assert '"email"' not in answer


@requirement("MCP-1")
async def test_a_page_that_has_to_be_opened_is_named(npm: Path, tmp_path: Path) -> None:
    async with everything(npm, tmp_path, Person()) as server:
        declined = await text_of(server, "trigger-url-elicitation", {"url": "https://a.test/page"})
        with pytest.raises(ServerTrouble, match=r"A person has to open https://modelcontextprotocol\.io first\."):
            await text_of(server, "trigger-url-elicitation", {"url": "https://a.test/page", "errorPath": True})

    assert "User declined to open the URL" in declined


@requirement("MCP-1")
async def test_what_is_not_offered_to_a_server_it_does_not_offer_back(npm: Path, tmp_path: Path) -> None:
    """Sampling, and calls that become tasks, are not there; and without a person no questions."""
    async with everything(npm, tmp_path) as server:
        await server.ready()
        assert server.listing is not None
        names = {tool.name for tool in server.listing.tools}

    assert "get-roots-list" in names
    assert not {name for name in names if "sampling" in name or "elicitation" in name or "research" in name}


@requirement("MCP-1")
async def test_resources_prompts_and_roots_are_there(npm: Path, tmp_path: Path) -> None:
    async with everything(npm, tmp_path) as server:
        resources = {one.uri for one in await server.resources()}
        page = await server.read("demo://resource/static/document/features.md")
        prompt = await server.prompt("args-prompt", {"city": "Bern"})
        roots = await text_of(server, "get-roots-list")
        with pytest.raises(ServerTrouble):
            await server.read("demo://resource/static/document/missing.md")

    assert {"demo://resource/static/document/features.md", "demo://resource/dynamic/text/{resourceId}"} <= resources
    assert "Everything" in page["contents"][0]["text"]
    assert prompt["messages"][0]["content"]["text"] == "What's weather in Bern?"
    assert tmp_path.as_uri() in roots


@requirement("MCP-1")
async def test_what_a_server_logs_stands_in_its_log(npm: Path, tmp_path: Path) -> None:
    async with everything(npm, tmp_path) as server:
        await text_of(server, "toggle-simulated-logging")
        log = tmp_path / "mcp" / "logs" / "raw.log"
        await until(
            lambda: log.exists() and "level message" in log.read_text().replace("level-message", "level message")
        )


async def directories(session: Session) -> list[str]:
    """Once it has any: it asks for them only after it is up."""
    async with asyncio.timeout(HANG):
        while True:
            _, *found = words(await run(session, "mcp__it__list_allowed_directories")).splitlines()
            if found:
                return found


@requirement("MCP-1")
async def test_the_file_server_takes_the_workspace_from_us(npm: Path, tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "a.txt").write_text("one\n")
    async with working(npm, project, "server-filesystem") as session:
        allowed = await directories(session)
        await run(session, "mcp__it__write_file", {"path": str(project / "b.txt"), "content": "two\n"})
        both = await run(
            session, "mcp__it__read_multiple_files", {"paths": [str(project / n) for n in ("a.txt", "b.txt")]}
        )
        outside = await run(session, "mcp__it__read_text_file", {"path": "/etc/passwd"})

    assert allowed == [str(project)]
    assert (project / "b.txt").read_text() == "two\n"
    assert ("one" in words(both), "two" in words(both)) == (True, True)
    assert (outside.status, "outside allowed directories" in words(outside)) == (Status.FAILED, True)


@requirement("MCP-1", "BUD-5")
async def test_a_picture_that_is_given_twice_is_shown_once(npm: Path, tmp_path: Path) -> None:
    (tmp_path / "dot.png").write_bytes(b64decode(PNG))
    async with working(npm, tmp_path, "server-filesystem", str(tmp_path)) as session:
        picture = await run(session, "mcp__it__read_media_file", {"path": str(tmp_path / "dot.png")})

    assert [type(block) for block in picture.content] == [Image]
