"""A server whose answers are what its argument says: JSON of what it sends for a method, in the place of what is right.

`{"tools/call": {"result": null}}` sends that, with the id of the request; a
text is sent as it stands, with the id in the place of `ID` and `"pad"` times an
x in the place of `PAD`. `"then"` are messages that follow on each such answer.
After the method `"deaf after"` it reads nothing any more.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

OBJECT = {"type": "object", "properties": {}}
RIGHT: dict[str, Any] = {
    "tools/list": {"result": {"tools": [{"name": "fine", "inputSchema": OBJECT}]}},
    "prompts/list": {"result": {"prompts": []}},
    "resources/list": {"result": {"resources": []}},
    "tools/call": {"result": {"content": [{"type": "text", "text": "done"}]}},
}


def initialized(params: dict[str, Any]) -> dict[str, Any]:
    offers = {"tools": {"listChanged": True}, "resources": {}, "prompts": {}}
    server = {"name": "crooked", "version": "1"}
    return {"result": {"protocolVersion": params["protocolVersion"], "capabilities": offers, "serverInfo": server}}


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def answer_to(message: dict[str, Any], wrong: dict[str, Any]) -> None:
    method, id = message["method"], message["id"]
    unknown = {"error": {"code": -32601, "message": f"no method {method}"}}
    answer = initialized(message["params"]) if method == "initialize" else {**RIGHT, **wrong}.get(method, unknown)
    if isinstance(answer, str):
        say(answer.replace("ID", str(id)).replace("PAD", "x" * wrong.get("pad", 0)))
        return
    say(json.dumps({"jsonrpc": "2.0", "id": id, **{key: answer[key] for key in answer if key != "then"}}))
    for more in answer.get("then", ()):
        say(json.dumps({"jsonrpc": "2.0", **more}))


def main(wrong: dict[str, Any]) -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if "method" in message and "id" in message:
            answer_to(message, wrong)
        if message.get("method") == wrong.get("deaf after", ""):
            time.sleep(3600)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
