from __future__ import annotations

from pathlib import Path

import pytest

from ferrule.core.calls import ToolCall
from ferrule.providers.scripted import says
from ferrule.sdk.client import FerruleClient
from ferrule.sdk.errors import NotDone
from ferrule.sdk.messages import UserMessage

from .scenes import of, options, read


async def test_the_client_says_what_it_brought_back_and_what_it_left(tmp_path: Path) -> None:
    calls = [ToolCall(name, "Write", {"file_path": name, "content": "made"}) for name in ("a", "b")]
    chosen = options(tmp_path, says("", *calls), says("."), mode="acceptEdits", checkpoints=True, prompt_messages=True)
    async with FerruleClient(chosen) as client:
        await client.query("Write.")
        prompt, *_ = of(UserMessage, await read(client.receive_response()))
        assert prompt.content == "Write."
        assert prompt.uuid
        (tmp_path / "b").write_text("by hand")

        rewound = await client.rewind_files(prompt.uuid)

    assert [Path(path).name for path in rewound.restored] == ["a"]
    assert [Path(path).name for path in rewound.left] == ["b"]


async def test_without_checkpoints_there_is_nothing_to_go_back_to(tmp_path: Path) -> None:
    async with FerruleClient(options(tmp_path)) as client:
        with pytest.raises(NotDone, match="checkpoints"):
            await client.rewind_files("x")
