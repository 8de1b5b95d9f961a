"""What is told of changes that were not let happen."""

from __future__ import annotations

from pathlib import Path

import pytest

from ferrule.host.processes.change_words import describe_changes
from ferrule.host.processes.command import Changes
from tests.requirement import requirement


@requirement("HELD-14")
def test_what_was_not_declared_is_named_once_and_shortly(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    bashrc = f"{tmp_path}/.bashrc"

    one = describe_changes(Changes(dropped=(bashrc,), refused=(bashrc,), totals={"dropped": 1}))
    many = describe_changes(Changes(dropped=("/a", "/b", "/c", "/d"), totals={"dropped": 1_203}))
    failed = describe_changes(Changes(failed=(("/a", "somebody else changed it meanwhile"),)))

    assert list(one) == ["It tried to write ~/.bashrc, which it had not declared; that was not kept."]
    assert list(many) == ["It tried to write /a, /b, /c and 1,200 more, which it had not declared; that was not kept."]
    assert list(failed) == ["/a stays as it was: somebody else changed it meanwhile."]
    assert list(describe_changes(Changes(done=("/a",)))) == list(describe_changes(None)) == []
