from __future__ import annotations

from pathlib import Path

import pytest

from ferrule.host.storage.state_folder import state_folder


def test_the_state_folder_is_where_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/var/state")

    assert state_folder() == Path("/var/state/ferrule")


@pytest.mark.parametrize("chosen", ["", " ", "relative/state"])
def test_a_state_folder_that_is_not_absolute_counts_as_none(monkeypatch: pytest.MonkeyPatch, chosen: str) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", chosen)
    monkeypatch.setenv("HOME", "/home/somebody")
    monkeypatch.setattr("sys.platform", "linux")

    assert state_folder() == Path("/home/somebody/.local/state/ferrule")


def test_the_state_folder_of_a_mac_is_among_its_applications(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setenv("HOME", "/Users/somebody")
    monkeypatch.setattr("sys.platform", "darwin")

    assert state_folder() == Path("/Users/somebody/Library/Application Support/ferrule")
