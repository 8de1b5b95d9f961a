"""`ferrule trust`: trusts a folder's hooks, servers and rules."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable

from ...core.content import encodable
from ...host.storage.state_folder import state_folder
from ...settings.reload import LiveSettings
from ...settings.settings_sources import SettingsError, open_layers
from ...settings.trust_store import NotStored
from ..exits import FAILED, OK, Failed, UsageError
from ..trusting import agrees, describe_folder


def run(chosen: argparse.Namespace) -> int:
    folder = os.path.abspath(chosen.path or os.getcwd())
    if not os.path.isdir(folder):
        raise UsageError(f"{chosen.path} is not a directory.")
    try:
        live = open_layers(folder, state_folder())
        if chosen.revoke:
            return _revoke(live)
        return _trust(live, chosen)
    except (NotStored, SettingsError) as error:
        raise Failed(str(error)) from None


def _trust(live: LiveSettings, chosen: argparse.Namespace) -> int:
    current = live.current()
    standing = current.standing
    for note in current.skipped:
        print(f"ferrule: {note}", file=sys.stderr)
    _print(describe_folder(live.folder, standing))
    if chosen.show:
        return OK
    if standing.trusted and not standing.new and not standing.gone:
        return OK
    if not chosen.yes and not agrees():
        print("Nothing new is trusted.", file=sys.stderr)
        return FAILED
    live.trust(standing.items)
    _print([f"Trusted as it is now. Changes do not apply until you trust it again: {live.folder}"])
    return OK


def _revoke(live: LiveSettings) -> int:
    there = live.revoke()
    _print([f"Trust in {live.folder} was revoked." if there else f"{live.folder} was not trusted."])
    return OK


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        print(encodable(line))
    sys.stdout.flush()
