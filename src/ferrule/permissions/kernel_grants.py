"""What a confined command may still do, in words and as data."""

from __future__ import annotations

from typing import Any

from ..core.effects import Effects
from ..core.values import named_value
from ..core.verdicts import Confinement, DeclaredWrite, Grants, describe_grants
from ..host.processes.declared_writes import granted_writes
from .path_patterns import is_below


@named_value
class KernelGrants:
    """`None` means everything that this user may."""

    reads: tuple[str, ...] | None
    """Beyond what every command may read."""
    writes: tuple[DeclaredWrite, ...] | None
    network: bool
    hidden: tuple[str, ...] = ()
    """Patterns of paths that rules and settings hide from it."""
    unwritable: tuple[str, ...] = ()
    roots: tuple[str, ...] = ()
    """The working directories, which every command may read."""

    @classmethod
    def of(
        cls, needed: Confinement, effects: Effects, *, roots: tuple[str, ...] = (), on_disk: bool = True
    ) -> KernelGrants:
        """`effects` are those that were judged. Without disk access a pattern means its folder."""
        grants = needed.grants
        network = not (needed.unreachable or needed.read_only) if grants is None else grants.network
        if needed.read_only:
            writes = ()
        elif needed.writable is not None:
            network = False
            writes = tuple(DeclaredWrite(path=folder, tree=True) for folder in needed.writable)
        else:
            writes = None if grants is None else granted_writes(effects, grants, on_disk=on_disk)
        return cls(
            reads=None if grants is None else grants.reads,
            writes=writes,
            network=network,
            hidden=needed.unreadable,
            unwritable=needed.unwritable,
            roots=roots,
        )

    def as_data(self) -> dict[str, Any]:
        writes = self.writes
        return {
            "reads": None if self.reads is None else list(self.reads),
            "writes": None if writes is None else [{"path": one.path, "tree": one.tree} for one in writes],
            "network": self.network,
            "hidden": list(self.hidden),
            "unwritable": list(self.unwritable),
        }

    def describe(self) -> str:
        """To follow "it" in a sentence."""
        elsewhere = tuple(path for path in self.reads or () if not any(is_below(path, root) for root in self.roots))
        reads, writes, reaches = describe_grants(
            Grants(reads=elsewhere, writes=self.writes or (), network=self.network)
        )
        parts = [
            "reads all that this user may" if self.reads is None else reads,
            "writes all that this user may" if self.writes is None else writes,
            reaches,
        ]
        if self.hidden:
            parts.append(f"cannot see {', '.join(self.hidden)}")
        if self.unwritable and self.writes != ():
            parts.append(f"cannot change {', '.join(self.unwritable)}")
        return "; ".join(parts)
