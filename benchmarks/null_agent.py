"""The floor: the same requests with the same bytes, and the same work between them, with nothing around it.

    python null_agent.py PORT RECORDED

RECORDED is the body of the last request of a run of Ferrule's. Its messages
are sent again as they grew; between them each file is read and each command
run, without rules, ledgers, records or events.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any


async def main(port: int, recorded: str) -> None:
    with open(recorded, "rb") as file:  # noqa: ASYNC230 - before anything runs
        body = json.loads(file.read())
    messages: list[dict[str, Any]] = body["messages"]
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 20)
    for place, message in enumerate(messages):
        if message["role"] == "assistant":
            await asyncio.gather(*(_work(block) for block in message["content"] if block["type"] == "tool_use"))
        elif place + 1 == len(messages) or messages[place + 1]["role"] == "assistant":
            await _ask(reader, writer, {**body, "messages": messages[: place + 1]})
    writer.close()


async def _work(call: dict[str, Any]) -> None:
    if call["name"] == "Read":
        with open(call["input"]["file_path"], encoding="utf-8") as file:  # noqa: ASYNC230 - as short as can be
            list(enumerate(file.read().split("\n"), 1))
    elif call["name"] == "Bash":
        process = await asyncio.create_subprocess_exec(
            "/bin/sh", "-c", call["input"]["command"], stdout=asyncio.subprocess.PIPE
        )
        await process.communicate()


async def _ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, body: dict[str, Any]) -> None:
    data = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
    writer.write(
        b"POST /v1/messages HTTP/1.1\r\nHost: 127.0.0.1\r\ncontent-type: application/json\r\n"
        b"content-length: %d\r\n\r\n" % len(data) + data
    )
    await reader.readuntil(b"\r\n\r\n")
    while size := int(await reader.readline(), 16):
        for line in (await reader.readexactly(size + 2)).split(b"\n"):
            if line.startswith(b"data: "):
                json.loads(line[6:])
    await reader.readline()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), sys.argv[2]))
