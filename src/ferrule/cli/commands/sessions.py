"""`ferrule sessions`: the conversations that can be gone on with."""

from __future__ import annotations

import argparse

from ..exits import Usage


def run(chosen: argparse.Namespace) -> int:
    raise Usage("this version keeps no conversations yet.")
