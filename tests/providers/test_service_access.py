"""Keys, headers and names of models as people have them in their environment, by what the service is sent."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ferrule.core.model import ModelError, Request, TextDelta, UserTurn
from ferrule.providers.claude_choice import is_short
from ferrule.providers.model_catalog import OpenedModel, open_model
from ferrule.providers.model_choice import ModelChoice, choose_model
from ferrule.testing.model_server import LoggedRequest, ModelServer
from tests.requirement import requirement


async def sent(
    name: str | None,
    environ: Mapping[str, str],
    *turns: Mapping[str, Any],
    choice: ModelChoice | None = None,
    planning: bool = False,
) -> list[LoggedRequest]:
    async with ModelServer.playing({"turns": list(turns) or [{"text": "Well."}]}) as server:
        model = choose_model(name, {"ANTHROPIC_BASE_URL": server.url, **environ}, choice)
        try:
            await hear(model, planning=planning)
        finally:
            await model.close()
        return server.requests


async def hear(model: OpenedModel, *, planning: bool = False) -> str:
    async with model.stream(Request([UserTurn.saying("Hi")], (), planning=planning)) as events:
        return "".join([event.text async for event in events if isinstance(event, TextDelta)])


@requirement("LOOP-1")
@pytest.mark.parametrize(
    ("name", "full", "beta"),
    [
        ("sonnet[1m]", "claude-sonnet-5-5", "context-1m-2025-08-07"),
        ("claude-sonnet-4-5[1m]", "claude-sonnet-4-5", "context-1m-2025-08-07"),
        ("claude-opus-4-8[1m]", "claude-opus-4-8", "context-1m-2025-08-07"),
        ("default", "claude-sonnet-5-5", None),
        ("best", "claude-opus-5-5", None),
        ("opusplan", "claude-sonnet-5-5", None),
    ],
)
async def test_names_that_people_have_in_their_settings_are_sent_as_the_service_knows_them(
    name: str, full: str, beta: str | None
) -> None:
    (request,) = await sent(name, {"ANTHROPIC_API_KEY": "k"})

    assert (request.body["model"], request.headers.get("anthropic-beta")) == (full, beta)


def test_a_long_window_is_known_to_the_conversation() -> None:
    model = open_model("claude-sonnet-4-5[1m]", {"ANTHROPIC_API_KEY": "k"})

    assert (model.name, model.facts.window) == ("claude-sonnet-4-5", 1_000_000)


async def test_the_environment_names_the_model_behind_a_short_name_with_its_window() -> None:
    own = {"ANTHROPIC_API_KEY": "k", "ANTHROPIC_DEFAULT_OPUS_MODEL": "claude-opus-4-5[1m]"}

    (request,) = await sent("opus", own)

    assert (request.body["model"], request.headers["anthropic-beta"]) == ("claude-opus-4-5", "context-1m-2025-08-07")


async def test_opusplan_asks_opus_for_plans_and_sonnet_for_work() -> None:
    (plan,) = await sent("opusplan", {"ANTHROPIC_API_KEY": "k"}, planning=True)
    (work,) = await sent("opusplan", {"ANTHROPIC_API_KEY": "k"})

    assert (plan.body["model"], work.body["model"]) == ("claude-opus-5-5", "claude-sonnet-5-5")
    assert all(map(is_short, ("opusplan", "opus[1m]", "best", "default")))


@requirement("LOOP-1")
async def test_headers_of_the_users_own_go_with_each_request_and_features_are_joined() -> None:
    own = "X-Team: blue\nanthropic-beta: mine\nUser-Agent: gateway/1"

    (request,) = await sent(
        "sonnet", {"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BETAS": "theirs", "ANTHROPIC_CUSTOM_HEADERS": own}
    )

    assert (request.headers["x-team"], request.headers["anthropic-beta"]) == ("blue", "theirs,mine")
    assert (request.headers["user-agent"], request.headers["x-api-key"]) == ("gateway/1", "k")


@pytest.mark.parametrize("line", ["no colon", "Bad Name: x", "X: a\x7fb", "Content-Length: 7", "X: é"])
def test_a_line_that_is_not_a_header_is_refused(line: str) -> None:
    with pytest.raises(ModelError, match="ANTHROPIC_CUSTOM_HEADERS"):
        open_model("sonnet", {"ANTHROPIC_API_KEY": "k", "ANTHROPIC_CUSTOM_HEADERS": line})


@requirement("LOOP-1")
async def test_a_token_of_a_subscription_is_a_bearer_with_its_feature() -> None:
    (request,) = await sent("sonnet", {"CLAUDE_CODE_OAUTH_TOKEN": "tok"})

    assert request.headers["authorization"] == "Bearer tok"
    assert "x-api-key" not in request.headers
    assert request.headers["anthropic-beta"] == "oauth-2025-04-20"


async def test_a_request_for_a_cloud_that_cannot_be_asked_is_never_sent_elsewhere() -> None:
    variable = "CLAUDE_CODE_USE_FOUNDRY"
    around = {"ANTHROPIC_API_KEY": "k", variable: "1"}

    for name in (None, "sonnet", "us.anthropic.claude-sonnet-4-5-v1"):
        with pytest.raises(ModelError, match=f"{variable} is set"):
            await sent(name, around)
    (named,) = await sent("anthropic:sonnet", around)
    (off,) = await sent("sonnet", {"ANTHROPIC_API_KEY": "k", variable: "0"})
    assert (named.body["model"], off.body["model"]) == ("claude-sonnet-5-5", "claude-sonnet-5-5")


async def test_the_longest_answer_can_be_set() -> None:
    (less,) = await sent("sonnet", {"ANTHROPIC_API_KEY": "k", "CLAUDE_CODE_MAX_OUTPUT_TOKENS": "4096"})
    (more,) = await sent("sonnet", {"ANTHROPIC_API_KEY": "k", "CLAUDE_CODE_MAX_OUTPUT_TOKENS": "99999999"})

    assert (less.body["max_tokens"], more.body["max_tokens"]) == (4096, 128_000)


def counting(folder: Path) -> ModelChoice:
    """A helper whose keys are numbered."""
    command = f"echo x >> {folder}/asked; printf 'key-%s\\n' $(wc -l < {folder}/asked)"
    return ModelChoice(key_helper=command)


@requirement("LOOP-1")
async def test_a_helper_gives_the_key_once_and_again_after_a_refusal(tmp_path: Path) -> None:
    refused = {"text": "", "fault": {"status": 401}}

    async with ModelServer.playing({"turns": [{"text": "1"}, {"text": "2"}, refused, {"text": "3"}]}) as server:
        model = choose_model("sonnet", {"ANTHROPIC_BASE_URL": server.url, "PATH": "/usr/bin:/bin"}, counting(tmp_path))
        answers = [await hear(model) for _ in range(3)]
        await model.close()

    assert answers == ["1", "2", "3"]
    assert [one.headers["x-api-key"] for one in server.requests] == ["key-1", "key-1", "key-1", "key-2"]
    assert server.requests[0].headers["authorization"] == "Bearer key-1"


async def test_a_key_of_a_helper_lasts_as_long_as_is_set_and_a_second_refusal_is_an_error(tmp_path: Path) -> None:
    refused = {"text": "", "fault": {"status": 401}}
    around = {"PATH": "/usr/bin:/bin", "CLAUDE_CODE_API_KEY_HELPER_TTL_MS": "0"}

    async with ModelServer.playing({"turns": [{"text": "1"}, {"text": "2"}, refused, refused]}) as server:
        model = choose_model("sonnet", {"ANTHROPIC_BASE_URL": server.url, **around}, counting(tmp_path))
        await hear(model)
        await hear(model)
        with pytest.raises(ModelError, match="does not accept the key"):
            await hear(model)
        await model.close()

    assert [one.headers["x-api-key"] for one in server.requests] == ["key-1", "key-2", "key-3", "key-4"]


@pytest.mark.parametrize("command", ["exit 3", "true", "printf 'a\\033b'", "echo why >&2; false"])
async def test_a_helper_that_fails_is_named_and_nothing_is_sent(command: str) -> None:
    with pytest.raises(ModelError, match="`apiKeyHelper` failed"):
        await sent("sonnet", {"PATH": "/usr/bin:/bin"}, choice=ModelChoice(key_helper=command))


async def test_a_key_of_the_environment_is_used_before_a_helper() -> None:
    (request,) = await sent("sonnet", {"ANTHROPIC_API_KEY": "k"}, choice=ModelChoice(key_helper="exit 3"))

    assert request.headers["x-api-key"] == "k"
