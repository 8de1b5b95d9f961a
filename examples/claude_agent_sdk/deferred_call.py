"""A hook puts a call off, somebody looks at it, and the conversation goes on later."""

import asyncio
from typing import Any

from ferrule.compat.claude_agent_sdk import ClaudeAgentOptions, HookMatcher, ResultMessage, query
from ferrule.compat.claude_agent_sdk.types import HookContext, HookInput, HookJSONOutput


async def put_off(input_data: HookInput, tool_use_id: str | None, context: HookContext) -> HookJSONOutput:
    return {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "defer"}}


async def asked(prompt: str, **options: Any) -> ResultMessage:
    async for message in query(prompt=prompt, options=ClaudeAgentOptions(allowed_tools=["Bash"], **options)):
        if isinstance(message, ResultMessage):
            return message
    raise RuntimeError("there is always a result")


async def main() -> None:
    hooks = {"PreToolUse": [HookMatcher(matcher="Bash", hooks=[put_off])]}
    result = await asked("Run: echo hello", hooks=hooks)
    if result.deferred_tool_use is not None:
        print(f"Put off: {result.deferred_tool_use.name} {result.deferred_tool_use.input}")
        result = await asked("You may run it now.", resume=result.session_id)
    print(f"Model: {result.result}")


if __name__ == "__main__":
    asyncio.run(main())
