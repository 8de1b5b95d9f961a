"""An answer in a form that a program can read."""

import asyncio

from ferrule.compat.claude_agent_sdk import ClaudeAgentOptions, ResultMessage, query

SCHEMA = {
    "type": "object",
    "properties": {"language": {"type": "string"}, "files": {"type": "integer"}},
    "required": ["language", "files"],
    "additionalProperties": False,
}


async def main() -> None:
    options = ClaudeAgentOptions(output_format={"type": "json_schema", "schema": SCHEMA}, max_turns=5)
    async for message in query(prompt="Which language is this project in, and how many files?", options=options):
        if isinstance(message, ResultMessage):
            print(f"Ended: {message.subtype}, answer: {message.structured_output}")


if __name__ == "__main__":
    asyncio.run(main())
