"""Tools of one's own as an MCP server over HTTP: python examples/own_mcp_server.py"""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from ferrule.app.build import Settings, open_session
from ferrule.permissions.modes import Mode
from ferrule.sdk.tools import create_sdk_mcp_server, tool
from ferrule.server.desk import Desk
from ferrule.server.http_server import PATH, listen, serve_http
from ferrule.server.request_guard import RequestGuard


@tool("greet", "Greet somebody.", {"name": Annotated[str, "Who to greet."]}, annotations={"readOnlyHint": True})
async def greet(args: dict[str, Any]) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": f"Hello, {args['name']}!"}]}


async def main() -> None:
    own = create_sdk_mcp_server("greeter", tools=[greet])["instance"]
    settings = Settings(mode=Mode.BYPASS)  # these tools are ours, so nobody need be asked
    desk = Desk(lambda person: open_session(settings, tools=own.tools, person=person, builtin=False))
    with listen("127.0.0.1", 0) as listening:
        guard = RequestGuard(host="127.0.0.1", port=listening.getsockname()[1])
        print(f"http://{guard.authority}{PATH}", flush=True)
        await serve_http(desk, desk.server(name=own.name, version=own.version), listening, guard)


if __name__ == "__main__":
    asyncio.run(main())
