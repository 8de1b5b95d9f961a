"""Hooks that are addresses, on a real socket."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ferrule.hooks.hook import Hook
from ferrule.hooks.hook_loading import HookError
from ferrule.hooks.hook_matching import everything
from ferrule.hooks.http_hooks import Addresses, posting
from ferrule.hooks.reply_parsing import HookAnswer
from tests.host.http.http_serving import Served, serving
from tests.requirement import requirement

from .scripts import PAYLOAD, answer_of, deciding

ANY = Addresses()


def response(body: str, status: str = "200 OK") -> bytes:
    return f"HTTP/1.1 {status}\r\ncontent-length: {len(body)}\r\n\r\n{body}".encode()


async def asked(
    folder: Path, served: Served, *, closed: bool = False, seconds: float = 20.0, **said: Any
) -> HookAnswer:
    work = posting({"url": str(served.url("/hook")), **said}, ANY, {"TOKEN": "abc", "OTHER": "def"})
    hook = Hook(event="PreToolUse", name="web", matches=everything, work=work, seconds=seconds, fails_closed=closed)
    return await answer_of(folder, hook)


@requirement("HOOK-1")
async def test_an_address_is_posted_the_event_and_decides(tmp_path: Path) -> None:
    async with serving(response(json.dumps(deciding("deny", "not online")))) as served:
        answer = await asked(tmp_path, served)

    (request,) = served.asked
    assert (answer.permission, answer.reason) == ("deny", "not online")
    assert (request.line, request.header("content-type")) == ("POST /hook HTTP/1.1", "application/json")
    assert json.loads(request.body) == {"cwd": str(tmp_path), **PAYLOAD}


@pytest.mark.parametrize("closed", [False, True], ids=["open", "closed"])
@pytest.mark.parametrize(
    ("answered", "words"),
    [
        (response(json.dumps(deciding("deny")), "500 Oops"), "answered with the status 500"),
        (response("", "302 Found"), "answered with the status 302"),
        (response("{nonsense"), "it printed invalid JSON"),
        (b"garbage\r\n\r\n", "127.0.0.1"),
        (response("x" * (3 << 20)), "127.0.0.1"),
    ],
    ids=["an error", "a redirect", "no JSON", "no HTTP", "too much"],
)
async def test_what_is_no_answer_refuses_only_if_the_hook_fails_closed(
    answered: bytes, words: str, closed: bool, tmp_path: Path
) -> None:
    async with serving(answered) as served:
        answer = await asked(tmp_path, served, closed=closed)

    assert words in answer.fault
    assert answer.permission == ("deny" if closed else None)


async def test_an_address_that_never_answers_runs_out_of_time(tmp_path: Path) -> None:
    async with serving(b"") as served:
        answer = await asked(tmp_path, served, closed=True, seconds=0.2)

    assert answer.permission == "deny"
    assert "it took longer than 0.2 s" in answer.fault


async def test_only_named_variables_leave_in_headers(tmp_path: Path) -> None:
    async with serving(response("")) as served:
        await asked(
            tmp_path,
            served,
            headers={"authorization": "Bearer ${TOKEN}", "x-other": "-$OTHER-"},
            allowedEnvVars=["TOKEN"],
        )

    (request,) = served.asked
    assert (request.header("authorization"), request.header("x-other")) == ("Bearer abc", "--")


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"url": "ftp://x"}, "only http: and https: are supported"),
        ({"url": "https://elsewhere.test/"}, "is not among `allowedHttpHookUrls`"),
        ({"url": "https://here.test/", "headers": {"a b": "c"}}, "header `a b` cannot be sent"),
        ({"url": "https://here.test/", "headers": {"a": "c\r\nd: e"}}, "header `a` cannot be sent"),
    ],
)
def test_an_address_that_may_not_be_asked_is_an_error(said: dict[str, Any], words: str) -> None:
    with pytest.raises(HookError, match=words):
        posting(said, Addresses(allowed=("https://here.test/*",)), {})
