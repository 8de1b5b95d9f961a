"""A server in plain JSON-RPC over its pipes, with faults on demand. Starts in the time that Python does.

Its arguments say what it does besides answering: `slow-start=SECONDS`,
`hang-start`, `die-at-start`, `garbage`, `no-tools`, `huge-list=COUNT`, `child=FILE`
(starts a process that outlives it, and writes its id there), `reaching` (has
tools that open files and start programs, as a server may that nobody can look into).
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

FAULTS = dict(argument.partition("=")[::2] for argument in sys.argv[1:])
LOCK = threading.Lock()
CANCELLED: set[Any] = set()
STATE = {"tools": ["echo"], "answers": {}}

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
OBJECT = {"type": "object", "properties": {}}
TOOLS: dict[str, dict[str, Any]] = {
    "echo": {
        "description": "Say what it is given.",
        "inputSchema": {
            "type": "object",
            "properties": {"text": {"type": "string"}},
            "required": ["text"],
            "additionalProperties": False,
        },
        "annotations": {"readOnlyHint": True, "title": "Echo"},
    },
    "write": {"description": "Change something.", "inputSchema": OBJECT},
    "die": {"description": "End in the middle of a call.", "inputSchema": OBJECT},
    "hang": {"description": "Never answer.", "inputSchema": OBJECT},
    "steps": {"description": "Report progress, then answer.", "inputSchema": OBJECT},
    "endless": {"description": "Report progress for ever.", "inputSchema": OBJECT},
    "flood": {"description": "Write much that is no message.", "inputSchema": OBJECT},
    "huge": {"description": "Answer at length.", "inputSchema": OBJECT},
    "sized": {
        "description": "Answer at length, by its own limit.",
        "inputSchema": OBJECT,
        "_meta": {"anthropic/maxResultSizeChars": 1000},
    },
    "fail": {"description": "Fail in its own words.", "inputSchema": OBJECT},
    "refuse": {"description": "Answer with an error of the protocol.", "inputSchema": OBJECT},
    "parts": {"description": "Answer with parts of every kind.", "inputSchema": OBJECT},
    "structured": {"description": "Answer with data only.", "inputSchema": OBJECT},
    "both": {"description": "Answer with data, and with the same as text.", "inputSchema": OBJECT},
    "cancelled": {"description": "Say how many calls were cancelled.", "inputSchema": OBJECT},
    "grow": {"description": "Offer one tool more from now on.", "inputSchema": OBJECT},
    "shrink_badly": {"description": "Say that the tools changed, then fail to list them.", "inputSchema": OBJECT},
    "pages_first": {"description": "Want a page to be opened first.", "inputSchema": OBJECT},
    "as_task": {
        "description": "Answer as a task only.",
        "inputSchema": OBJECT,
        "execution": {"taskSupport": "required"},
    },
    "tell": {"description": "Say something to the log.", "inputSchema": OBJECT},
    "twice": {"description": "Answer with a picture, and with the same as data.", "inputSchema": OBJECT},
    "ask": {"description": "Ask the person.", "inputSchema": OBJECT},
    "environment": {"description": "Say which variables there are.", "inputSchema": OBJECT},
    "roots": {"description": "Ask for the roots.", "inputSchema": OBJECT},
}


def main() -> None:
    if "die-at-start" in FAULTS:
        sys.stderr.write("no configuration found\n")
        sys.exit(3)
    if "hang-start" in FAULTS:
        time.sleep(3600)
    if "slow-start" in FAULTS:
        time.sleep(float(FAULTS["slow-start"]))
    if "garbage" in FAULTS:
        sys.stdout.buffer.write(b'Listening on stdio\n\xff\xfe not UTF-8\n{"half": \n\n[1, 2]\n')
        sys.stdout.flush()
    if "child" in FAULTS:
        start_a_child(FAULTS["child"])
    for line in sys.stdin:
        message = json.loads(line)
        if "method" not in message:
            STATE["answers"][message["id"]] = message
        elif "id" in message:
            threading.Thread(target=handle, args=(message,), daemon=True).start()
        elif message["method"] == "notifications/cancelled":
            CANCELLED.add(message["params"]["requestId"])


def start_a_child(path: str) -> None:
    """In a session of its own, so that no signal to a group reaches it."""
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"], start_new_session=True)
    with open(f"{path}.new", "w") as file:
        file.write(str(child.pid))
    os.rename(f"{path}.new", path)


def send(message: dict[str, Any]) -> None:
    with LOCK:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def handle(request: dict[str, Any]) -> None:
    method, params, id = request["method"], request.get("params", {}), request["id"]
    try:
        send({"id": id, "result": METHODS[method](params, id)})
    except KeyError:
        send({"id": id, "error": {"code": -32601, "message": f"no method {method}"}})
    except Refused as refused:
        send({"id": id, "error": {"code": refused.code, "message": str(refused), "data": refused.data}})


class Refused(Exception):
    def __init__(self, message: str, code: int = -32000, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data


def initialize(params: dict[str, Any], id: Any) -> dict[str, Any]:
    offers = {"tools": {"listChanged": True}, "resources": {}, "prompts": {}}
    return {
        "protocolVersion": params["protocolVersion"],
        "capabilities": {} if "no-tools" in FAULTS else offers,
        "serverInfo": {"name": "raw", "version": "1"},
        "instructions": "Be careful.",
    }


def list_tools(params: dict[str, Any], id: Any) -> dict[str, Any]:
    if STATE.get("broken"):
        raise Refused("the list is broken")
    extra = {f"more_{at}": TOOLS["write"] for at in range(STATE.get("grown", 0))}
    many = {
        f"tool_{at}": {"description": "x" * 200, "inputSchema": OBJECT} for at in range(int(FAULTS.get("huge-list", 0)))
    }
    tools = [{"name": name, **tool} for name, tool in {**TOOLS, **extra, **many}.items()]
    start = int(params.get("cursor", 0))
    page = tools[start : start + 10]
    return {"tools": page, **({"nextCursor": str(start + 10)} if start + 10 < len(tools) else {})}


def call(params: dict[str, Any], id: Any) -> dict[str, Any]:
    name, given, token = params["name"], params.get("arguments", {}), params.get("_meta", {}).get("progressToken")
    if name in SPECIAL:
        return SPECIAL[name](given, token)
    return text("done")


def die(given: dict[str, Any], token: Any) -> dict[str, Any]:
    sys.stderr.write("out of luck\n")
    sys.stderr.flush()
    os._exit(7)


def hang(given: dict[str, Any], token: Any) -> dict[str, Any]:
    time.sleep(3600)
    return text("done")


def steps(given: dict[str, Any], token: Any) -> dict[str, Any]:
    for step in range(3):
        progress(token, step + 1, 3, f"step {step + 1}")
        time.sleep(0.15)
    return text("done")


def endless(given: dict[str, Any], token: Any) -> dict[str, Any]:
    for step in range(100_000):
        progress(token, step, None, None)
        time.sleep(0.02)
    return text("done")


def flood(given: dict[str, Any], token: Any) -> dict[str, Any]:
    with LOCK:
        for _ in range(2000):
            sys.stdout.write("x" * 1000 + "\n")
    return text("flooded")


def refuse(given: dict[str, Any], token: Any) -> dict[str, Any]:
    raise Refused("not today")


def grow(given: dict[str, Any], token: Any) -> dict[str, Any]:
    STATE["grown"] = STATE.get("grown", 0) + 1
    send({"method": "notifications/tools/list_changed"})
    return text("grown")


def shrink_badly(given: dict[str, Any], token: Any) -> dict[str, Any]:
    STATE["broken"] = True
    send({"method": "notifications/tools/list_changed"})
    return text("broken")


def pages_first(given: dict[str, Any], token: Any) -> dict[str, Any]:
    STATE["tried"] = STATE.get("tried", 0) + 1
    if STATE["tried"] % 2 == 0:
        return text("done at last")
    page = {"mode": "url", "message": "Agree here.", "url": "https://a.test/agree", "elicitationId": "1"}
    raise Refused("Agree first.", -32042, {"elicitations": [page]})


def tell(given: dict[str, Any], token: Any) -> dict[str, Any]:
    send({"method": "notifications/message", "params": {"level": "warning", "logger": "disk", "data": {"free": 3}}})
    return text("told")


def look(given: dict[str, Any], token: Any) -> dict[str, Any]:
    try:
        with open(given["path"]) as file:
            return text(file.read())
    except OSError as error:
        return text(f"cannot: {error.strerror}")


def put(given: dict[str, Any], token: Any) -> dict[str, Any]:
    try:
        with open(given["path"], "w") as file:
            file.write("changed by the server")
    except OSError as error:
        return text(f"cannot: {error.strerror}")
    return text("written")


def run(given: dict[str, Any], token: Any) -> dict[str, Any]:
    ran = subprocess.run(given["argv"], capture_output=True, text=True, cwd=given["cwd"], check=False)
    return text(f"{ran.returncode} {ran.stdout}")


def text(words: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": words}]}


def progress(token: Any, done: float, total: float | None, message: str | None) -> None:
    params = {"progressToken": token, "progress": done}
    if total is not None:
        params |= {"total": total, "message": message}
    send({"method": "notifications/progress", "params": params})


def asked(method: str, params: dict[str, Any]) -> Any:
    id = f"ours-{time.monotonic_ns()}"
    send({"id": id, "method": method, "params": params})
    while id not in STATE["answers"]:
        time.sleep(0.005)
    answer = STATE["answers"].pop(id)
    return answer.get("result", answer.get("error"))


PARTS = [
    {"type": "text", "text": "words"},
    {"type": "image", "data": PNG, "mimeType": "image/png"},
    {"type": "audio", "data": base64.b64encode(b"RIFF").decode(), "mimeType": "audio/wav"},
    {"type": "image", "data": base64.b64encode(b"no picture").decode(), "mimeType": "image/tiff"},
    {"type": "resource", "resource": {"uri": "note://1", "text": "a note"}},
    {"type": "resource", "resource": {"uri": "note://2", "blob": PNG, "mimeType": "image/png"}},
    {"type": "resource", "resource": {"uri": "note://3", "blob": "YSBub3Rl", "mimeType": "text/plain"}},
    {"type": "resource_link", "uri": "file:///a/b.txt", "name": "b.txt", "mimeType": "text/plain"},
]
QUESTION = {
    "message": "Where to?",
    "requestedSchema": {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "A city."},
            "seats": {"type": "integer"},
            "class": {"type": "string", "enum": ["first", "second"]},
            "return": {"type": "boolean"},
            "meal": {"type": "string", "default": "soup"},
        },
        "required": ["city"],
    },
}
RESOURCES = {
    "note://1": {"text": "a note", "mimeType": "text/plain"},
    "picture://1": {"blob": PNG, "mimeType": "image/png"},
}


def list_resources(params: dict[str, Any], id: Any) -> dict[str, Any]:
    STATE["looked"] = STATE.get("looked", 0) + 1
    listed = [{"uri": uri, "name": uri, "mimeType": one["mimeType"]} for uri, one in RESOURCES.items()]
    return {"resources": [*listed, {"uri": f"look://{STATE['looked']}", "name": "how often this was listed"}]}


def read_resource(params: dict[str, Any], id: Any) -> dict[str, Any]:
    uri = params["uri"]
    if uri == "secret://1":
        raise Refused("401 unauthorized: sign in first")
    if uri not in RESOURCES:
        raise Refused(f"there is no {uri}", -32002)
    return {"contents": [{"uri": uri, **RESOURCES[uri]}]}


def list_templates(params: dict[str, Any], id: Any) -> dict[str, Any]:
    return {"resourceTemplates": [{"uriTemplate": "note://{number}", "name": "a note by number"}]}


def list_prompts(params: dict[str, Any], id: Any) -> dict[str, Any]:
    return {"prompts": [{"name": "greet", "arguments": [{"name": "who", "required": True}]}]}


def get_prompt(params: dict[str, Any], id: Any) -> dict[str, Any]:
    words = f"Say hello to {params['arguments']['who']}."
    return {"messages": [{"role": "user", "content": {"type": "text", "text": words}}]}


SPECIAL: dict[str, Callable[[dict[str, Any], Any], dict[str, Any]]] = {
    "echo": lambda given, token: text(given["text"]),
    "die": die,
    "hang": hang,
    "steps": steps,
    "endless": endless,
    "flood": flood,
    "huge": lambda given, token: text("line of text\n" * 20_000),
    "sized": lambda given, token: text("line of text\n" * 20_000),
    "fail": lambda given, token: {**text("it is not Tuesday"), "isError": True},
    "refuse": refuse,
    "parts": lambda given, token: {"content": PARTS},
    "structured": lambda given, token: {"content": [], "structuredContent": {"answer": 42, "picture": "A" * 5000}},
    "both": lambda given, token: {**text('{"answer": 42}'), "structuredContent": {"answer": 42}},
    "pages_first": pages_first,
    "tell": tell,
    "twice": lambda given, token: {"content": [PARTS[1]], "structuredContent": {"content": [PARTS[1]]}},
    "cancelled": lambda given, token: text(str(len(CANCELLED))),
    "grow": grow,
    "shrink_badly": shrink_badly,
    "ask": lambda given, token: text(json.dumps(asked("elicitation/create", QUESTION))),
    "roots": lambda given, token: text(json.dumps(asked("roots/list", {}))),
    "environment": lambda given, token: text(json.dumps(dict(os.environ))),
}
REACHING = {"look": look, "put": put, "run": run, "pid": lambda given, token: text(str(os.getpid()))}
if "reaching" in FAULTS:
    TOOLS |= {name: {"description": name, "inputSchema": {"type": "object"}} for name in REACHING}
    SPECIAL |= REACHING
METHODS = {
    "initialize": initialize,
    "tools/list": list_tools,
    "tools/call": call,
    "resources/list": list_resources,
    "resources/templates/list": list_templates,
    "resources/read": read_resource,
    "prompts/list": list_prompts,
    "prompts/get": get_prompt,
}

if __name__ == "__main__":
    main()
