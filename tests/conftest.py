from __future__ import annotations

import os
import signal
import sys

import pytest
from hypothesis import settings

# Many tests start a Python process. Where nothing compiled is kept, each compiles everything again: seconds a test.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False


# Started by nohup or in the background of a script, this ignores signals, and so would every process that a test
# starts and then signals. A handler that does nothing is not passed on.
def _let_pass(number: int, frame: object) -> None: ...


for number in (signal.SIGINT, signal.SIGHUP):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, _let_pass)

settings.register_profile("steady", deadline=None, print_blob=True, max_examples=50)
settings.register_profile("thorough", deadline=None, print_blob=True, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes long comes first, so that at the end no process waits for another with one long test."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)
