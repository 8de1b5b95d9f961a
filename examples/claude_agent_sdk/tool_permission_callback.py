"""A callback that allows, refuses and redirects what the model wants to do."""

import asyncio
from typing import Any

from ferrule.compat.claude_agent_sdk import (
    AssistantMessage,
    ClaudeAgentOptions,
    ClaudeSDKClient,
    PermissionResult,
    PermissionResultAllow,
    PermissionResultDeny,
    ResultMessage,
    TextBlock,
    ToolPermissionContext,
)


async def decide(name: str, input: dict[str, Any], context: ToolPermissionContext) -> PermissionResult:
    print(f"Asked about {name}: {context.decision_reason}")
    if name == "Write":
        path = input["file_path"]
        if path.startswith("/etc/"):
            return PermissionResultDeny(message=f"{path} belongs to the system")
        return PermissionResultAllow(updated_input={**input, "file_path": f"safe/{path.rpartition('/')[2]}"})
    if name == "Bash" and "sudo" in input["command"]:
        return PermissionResultDeny(message="nothing is done as root")
    return PermissionResultAllow()


async def main() -> None:
    options = ClaudeAgentOptions(can_use_tool=decide, permission_mode="default", cwd=".")
    async with ClaudeSDKClient(options) as client:
        await client.query("Write hello.py and /etc/motd, and run it with sudo.")
        async for message in client.receive_response():
            if isinstance(message, AssistantMessage):
                for block in message.content:
                    if isinstance(block, TextBlock):
                        print(f"Model: {block.text}")
            elif isinstance(message, ResultMessage):
                refused = [denial["tool_name"] for denial in message.permission_denials or []]
                print(f"Ended: {message.subtype}, refused: {', '.join(refused)}")


if __name__ == "__main__":
    asyncio.run(main())
