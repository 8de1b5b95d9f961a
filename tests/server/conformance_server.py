"""What the official conformance suite expects of a server, on our server code.

Run as `python -m tests.server.conformance_server`; it prints its address on stderr.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path
from typing import Any

from ferrule.app.build import Settings, open_session
from ferrule.core.events import ListChanged
from ferrule.engine.session import Session
from ferrule.permissions.modes import Mode
from ferrule.sdk.tools import OwnServer, SdkServer, create_sdk_mcp_server, tool
from ferrule.server.client_person import ClientPerson
from ferrule.server.desk import Desk
from ferrule.server.http_server import PATH, listen, serve_http
from ferrule.server.request_guard import RequestGuard

from .conformance_asking import ASKING_TOOLS, CALLERS
from .conformance_sources import SuitePrompts, SuiteResources
from .conformance_tools import PLAIN_TOOLS, said, with_progress


class Suite:
    """The server under test, whose lists change when the suite asks for it."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._sessions: list[Session] = []
        self.own: SdkServer = create_sdk_mcp_server("conformance", tools=(*PLAIN_TOOLS, *ASKING_TOOLS))["instance"]

        @tool("test_dynamic", "Come and go.", {})
        async def dynamic(args: dict[str, Any]) -> dict[str, Any]:
            return {"content": [said("here")]}

        @tool("test_trigger_tool_change", "Change the list of tools.", {})
        async def change_tools(args: dict[str, Any]) -> dict[str, Any]:
            if dynamic.name in [each.name for each in self.own.tools]:
                self.own.remove(dynamic.name)
            else:
                self.own.add(dynamic)
            return {"content": [said("changed")]}

        @tool("test_trigger_prompt_change", "Say that the prompts changed.", {})
        async def change_prompts(args: dict[str, Any]) -> dict[str, Any]:
            for session in self._sessions:
                session.pipeline.emit(ListChanged("prompts", ()))
            return {"content": [said("changed")]}

        self.own.add(change_tools)
        self.own.add(change_prompts)

    def open(self, person: ClientPerson) -> Session:
        session = open_session(self._settings, tools=(with_progress,), person=person, builtin=False)
        OwnServer(self.own, None, session.registry)
        self._sessions.append(session)
        return session


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder, listen("127.0.0.1", 0) as listening:
        suite = Suite(Settings(cwd=folder, state_folder=Path(folder) / "state", mode=Mode.BYPASS))
        desk = Desk(suite.open, prompts=SuitePrompts(), resources=SuiteResources(), callers=CALLERS)
        guard = RequestGuard(host="127.0.0.1", port=listening.getsockname()[1])
        print(f"listening at http://{guard.authority}{PATH}", file=sys.stderr, flush=True)
        server = desk.server(name=suite.own.name, version=suite.own.version)
        await serve_http(desk, server, listening, guard)


if __name__ == "__main__":
    asyncio.run(main())
