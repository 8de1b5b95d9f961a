"""A conversation in this process with a model's service on loopback."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ferrule.app.build import Settings
from ferrule.app.headless_run import Headless
from ferrule.app.session_opening import OpenedSession, Which, open_conversation
from ferrule.core.events import Envelope
from ferrule.output.run_answer import RunAnswer
from ferrule.permissions.modes import Mode
from ferrule.providers.asked_model import AskedModel
from ferrule.providers.model_choice import ModelChoice
from ferrule.sdk.opened_models import OpenedModels
from ferrule.testing.model_server import ModelServer


@dataclass(frozen=True)
class Talk:
    server: ModelServer
    opened: OpenedSession
    headless: Headless
    model: AskedModel

    async def ask(self, prompt: Any) -> RunAnswer:
        return await self.headless.ask(prompt)

    def prompt(self, request: int = -1) -> str:
        """The last words of the user in what the service was sent, as one text."""
        content = self.server.bodies[request]["messages"][-1]["content"]
        return content if isinstance(content, str) else "\n".join(part.get("text", part["type"]) for part in content)


@asynccontextmanager
async def talk(
    folder: Path,
    *turns: Mapping[str, Any],
    which: Which | None = None,
    model: str = "claude-sonnet-5-5",
    environ: Mapping[str, str] | None = None,
    **settings: Any,
) -> AsyncGenerator[Talk]:
    given: dict[str, Any] = {"mode": Mode.DEFAULT, **settings}
    chosen = Settings(cwd=str(folder), state_folder=folder.parent / f"{folder.name}-state", **given)
    async with ModelServer.playing({"turns": list(turns) or [{"text": "Well."}]}) as server:
        around = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "sk-of-the-test", **(environ or {})}
        models = OpenedModels(None, around, ModelChoice(), name=model)
        asked = AskedModel(models.leading())
        opened = open_conversation(chosen, which=which, models=models)

        async def watch(envelope: Envelope) -> None:
            """Nobody looks."""

        headless = Headless(
            opened.session, asked, watch=watch, watch_last=lambda _: None, prepare=opened.commands.prepare
        )
        async with opened.session:
            await opened.wait_for_servers(10)
            yield Talk(server, opened, headless, asked)
        await models.close()
