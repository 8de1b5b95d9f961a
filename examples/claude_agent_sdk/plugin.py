"""A folder that brings a command, and the command asked for with a slash."""

import asyncio
import tempfile
from pathlib import Path

from ferrule.compat.claude_agent_sdk import ClaudeAgentOptions, ResultMessage, SystemMessage, query


def written(folder: str) -> Path:
    plugin = Path(folder, "greetings")
    (plugin / ".claude-plugin").mkdir(parents=True)
    (plugin / ".claude-plugin" / "plugin.json").write_text('{"name": "greetings"}')
    (plugin / "commands").mkdir()
    (plugin / "commands" / "greet.md").write_text("Greet $ARGUMENTS in one short sentence.")
    return plugin


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        options = ClaudeAgentOptions(plugins=[{"type": "local", "path": str(written(folder))}], max_turns=1)
        async for message in query(prompt="/greetings:greet Ann", options=options):
            if isinstance(message, SystemMessage) and message.subtype == "init":
                print(f"Plugins: {[plugin['name'] for plugin in message.data['plugins']]}")
            elif isinstance(message, ResultMessage):
                print(f"Model: {message.result}")


if __name__ == "__main__":
    asyncio.run(main())
