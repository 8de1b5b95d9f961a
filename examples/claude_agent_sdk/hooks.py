"""Hooks: one that refuses commands, one that adds to a prompt, one that looks at results, one that stops."""

import asyncio
from typing import Any

from ferrule.compat.claude_agent_sdk import (
    AssistantMessage,
    ClaudeAgentOptions,
    ClaudeSDKClient,
    HookContext,
    HookInput,
    HookJSONOutput,
    HookMatcher,
    ResultMessage,
    TextBlock,
)


async def no_scripts(input: Any, tool_use_id: str | None, context: HookContext) -> HookJSONOutput:
    if "foo.sh" not in input["tool_input"].get("command", ""):
        return {}
    return {
        "reason": "scripts are not run here",
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": "deny",
            "permissionDecisionReason": "scripts are not run here",
        },
    }


async def favourite_colour(input: HookInput, tool_use_id: str | None, context: HookContext) -> HookJSONOutput:
    return {
        "hookSpecificOutput": {"hookEventName": "UserPromptSubmit", "additionalContext": "My favourite colour is pink."}
    }


async def look_at_errors(input: Any, tool_use_id: str | None, context: HookContext) -> HookJSONOutput:
    if "critical" in str(input["tool_response"]):
        return {"continue_": False, "stopReason": "a critical error", "systemMessage": "Stopped."}
    return {}


async def talk(options: ClaudeAgentOptions, *prompts: str) -> None:
    async with ClaudeSDKClient(options=options) as client:
        for prompt in prompts:
            await client.query(prompt)
            async for message in client.receive_response():
                if isinstance(message, AssistantMessage):
                    for block in message.content:
                        if isinstance(block, TextBlock):
                            print(f"Model: {block.text}")
                elif isinstance(message, ResultMessage):
                    print(f"Ended: {message.subtype}, refused: {len(message.permission_denials or [])}")


async def main() -> None:
    guarded = ClaudeAgentOptions(
        allowed_tools=["Bash"], hooks={"PreToolUse": [HookMatcher(matcher="Bash", hooks=[no_scripts])]}
    )
    await talk(guarded, "Run ./foo.sh --help", "Run echo hello")
    await talk(
        ClaudeAgentOptions(hooks={"UserPromptSubmit": [HookMatcher(matcher=None, hooks=[favourite_colour])]}),
        "What is my favourite colour?",
    )
    await talk(
        ClaudeAgentOptions(
            allowed_tools=["Bash"], hooks={"PostToolUse": [HookMatcher(matcher="Bash", hooks=[look_at_errors])]}
        ),
        "Run echo critical",
    )


if __name__ == "__main__":
    asyncio.run(main())
