"""The examples, run as they stand against services on loopback."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Generator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, convert_to_openai_messages
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.utils.function_calling import convert_to_openai_tool
from mcp import Client
from openai import AsyncOpenAI

from ..cli.running import HANG, environment
from ..requirement import requirement
from ..server.desks import text
from .canned import anthropic_message, canned, chat_completion

EXAMPLES = Path(__file__).parents[2] / "examples"
READ: dict[str, Any] = {"file_path": "a.txt"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a.txt").write_text("the secret word is plover\n")
    return tmp_path


def _run(folder: Path, name: str, *arguments: str, **variables: str) -> str:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name), *arguments],
        cwd=folder,
        env=environment(folder, **variables),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=HANG,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@requirement("SDK-2")
@pytest.mark.slow
def test_the_loop_on_the_anthropic_package_reads_and_refuses(folder: Path) -> None:
    calls = [
        {"type": "tool_use", "id": "t1", "name": "Read", "input": READ},
        {"type": "tool_use", "id": "t2", "name": "Write", "input": {"file_path": "b.txt", "content": ""}},
    ]
    answers = (anthropic_message(*calls), anthropic_message({"type": "text", "text": "It is plover."}))
    with canned(answers) as service:
        said = _run(
            folder, "anthropic_loop.py", "canned", "What is it?", ANTHROPIC_BASE_URL=service.url, ANTHROPIC_API_KEY="k"
        )

    read, write = service.requests[1]["messages"][-1]["content"]
    assert said == "It is plover.\n"
    assert "plover" in json.dumps(read)
    assert (write["is_error"], (folder / "b.txt").exists()) == (True, False)
    assert "Read" in [tool["name"] for tool in service.requests[0]["tools"]]


@requirement("SDK-2")
@pytest.mark.slow
def test_the_loop_on_the_openai_package_reads_and_writes(folder: Path) -> None:
    write = {"file_path": "b.txt", "content": "plover"}
    with canned((chat_completion(None, ("Read", READ), ("Write", write)), chat_completion("Done."))) as service:
        said = _run(
            folder, "openai_loop.py", "canned", "Copy it.", OPENAI_BASE_URL=f"{service.url}/v1", OPENAI_API_KEY="k"
        )

    *_, read, written = service.requests[1]["messages"]
    assert said == "Done.\n"
    assert (read["role"], "plover" in read["content"]) == ("tool", True)
    assert (written["tool_call_id"], (folder / "b.txt").read_text()) == ("call_1", "plover")


@requirement("SDK-2")
@pytest.mark.slow
def test_an_agent_of_pydantic_ai_has_them_as_a_toolset(folder: Path) -> None:
    with canned((chat_completion(None, ("Read", READ)), chat_completion("It is plover."))) as service:
        said = _run(
            folder,
            "pydantic_ai_toolset.py",
            "openai-chat:canned",
            "What is it?",
            OPENAI_BASE_URL=f"{service.url}/v1",
            OPENAI_API_KEY="k",
        )

    assert said == "It is plover.\n"
    assert "plover" in service.requests[1]["messages"][-1]["content"]


class LoopbackModel(BaseChatModel):
    """A chat model of LangChain on the `openai` package."""

    url: str
    tools: list[dict[str, Any]] = []

    @property
    def _llm_type(self) -> str:
        return "loopback"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, AIMessage]:
        return self.model_copy(update={"tools": [convert_to_openai_tool(tool) for tool in tools]})

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        raise NotImplementedError

    async def _agenerate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        async with AsyncOpenAI(base_url=self.url, api_key="k") as client:
            response = await client.chat.completions.create(
                model="canned",
                messages=convert_to_openai_messages(messages),  # pyright: ignore[reportArgumentType]
                tools=self.tools,  # pyright: ignore[reportArgumentType]
            )
        message = response.choices[0].message
        calls = [
            {
                "name": call.function.name,
                "args": json.loads(call.function.arguments),
                "id": call.id,
                "type": "tool_call",
            }
            for call in message.tool_calls or []
            if call.type == "function"
        ]
        reply = AIMessage(message.content or "", tool_calls=calls)
        return ChatResult(generations=[ChatGeneration(message=reply)])


def _example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@requirement("SDK-2")
async def test_langchain_has_them_as_a_list_of_tools(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "state"))
    with canned((chat_completion(None, ("Read", READ)), chat_completion("It is plover."))) as service:
        said = await _example("langchain_tools").answer(LoopbackModel(url=f"{service.url}/v1"), "What is it?")

    assert said == "It is plover."
    assert "plover" in service.requests[1]["messages"][-1]["content"]


@pytest.fixture
def greeter(folder: Path) -> Generator[str]:
    process = subprocess.Popen(
        [sys.executable, str(EXAMPLES / "own_mcp_server.py")],
        cwd=folder,
        env=environment(folder),
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.wait(HANG)
        process.stdout.close()


@pytest.mark.slow
async def test_a_server_of_ones_own_answers_the_official_client(greeter: str) -> None:
    async with Client(greeter) as client:
        (listed,) = (await client.list_tools()).tools
        result = await client.call_tool("greet", {"name": "you"})

    assert (listed.name, listed.annotations and listed.annotations.read_only_hint) == ("greet", True)
    assert text(result) == "Hello, you!"
