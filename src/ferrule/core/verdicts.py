"""May it? One answer, where it came from, and how several become one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from enum import IntEnum
from typing import Any, Literal, TypeAlias

from .effects import Effects, ReachesHost, ReadsPath, WritesPath
from .values import frozen_named_value, frozen_value


class Behavior(IntEnum):
    """Ordered, so that `max` is the safe choice."""

    ALLOW = 0
    ASK = 1
    DENY = 2


Source: TypeAlias = Literal["rule", "safety", "mode", "tool", "hook", "classifier", "user", "default"]
"""`safety` is what no rule and no mode can approve: protected, sensitive and critical paths, denies out of reach."""


@frozen_named_value
class DeclaredWrite:
    """A name that a command says it changes."""

    path: str
    """Absolute, with the links of its folders resolved."""
    tree: bool = False
    """Whether all that is below the name may change too."""


@frozen_named_value
class Grants:
    """What a command that nobody approved may touch: what it declared, and nothing else."""

    reads: tuple[str, ...] = ()
    """Beyond what every command may read."""
    writes: tuple[DeclaredWrite, ...] = ()
    """Empty for a command that is confined to reading."""
    network: bool = False
    lasts: bool = False
    """Whether the command continues after the call, so that nothing can wait for its end."""

    @classmethod
    def for_effects(cls, effects: Effects, *, lasts: bool = False) -> Grants:
        """As effects were judged. Whoever starts the command looks at the disk for the exact names."""
        reads: dict[str, None] = {}
        writes: dict[str, None] = {}
        network = False
        for touch in effects.touches:
            if isinstance(touch, ReadsPath):
                if touch.real not in ("/", "") or touch.path != "/":  # the root means an unknown path
                    reads[touch.real or touch.path] = None
            elif isinstance(touch, WritesPath):
                writes[touch.real or touch.path] = None
                name = touch.path[touch.path.rfind("/") :]  # a link at the end may itself be what is replaced
                writes |= dict.fromkeys(link for link in touch.links if link.endswith(name))
            elif isinstance(touch, ReachesHost):
                network = True
        declared = tuple(DeclaredWrite(path=path) for path in writes)
        return cls(reads=tuple(reads), writes=declared, network=network, lasts=lasts)


def describe_grants(grants: Grants) -> tuple[str, ...]:
    """What the kernel allows a command that is confined to these grants, in lines for people.

    >>> describe_grants(Grants(writes=(DeclaredWrite(path="/srv/a"), DeclaredWrite(path="/srv/b", tree=True))))[1:]
    ('writes only /srv/a, /srv/b and all below it', 'reaches nobody')
    """
    more = f", and {', '.join(grants.reads)}" if grants.reads else ""
    names = ", ".join(f"{one.path} and all below it" if one.tree else one.path for one in grants.writes)
    return (
        f"reads the system, its tools and the workspace without secrets{more}",
        f"writes only {names}" if names else "writes nothing",
        "reaches the network" if grants.network else "reaches nobody",
    )


@frozen_named_value
class Confinement:
    """What a sandbox has to enforce for a call whose own account cannot promise it.

    The paths are those of rules: absolute, with gitignore wildcards where the
    rule has them. `read_only` lets the call write nowhere.
    """

    unreadable: tuple[str, ...] = ()
    unwritable: tuple[str, ...] = ()
    unreachable: tuple[str, ...] = ()
    """Hosts, by the domains that rules name."""
    read_only: bool = False
    writable: tuple[str, ...] | None = None
    """The only folders that may be written, where given; the network is off then."""
    grants: Grants | None = None
    """What the call is confined to unless somebody approved it. The rest applies to an approved one too."""
    then: Behavior = Behavior.ASK
    """What remains to be said about the call once it is confined like this."""


Severity: TypeAlias = Literal["low", "medium", "high", "critical"]


@frozen_value
class Risk:
    """Something a person should see before they say yes."""

    kind: str
    severity: Severity
    denies: bool
    """Whether nobody may approve it. Otherwise a person may, and for a critical one no rule and no mode."""
    message: str


@frozen_named_value
class Verdict:
    """An opinion on one call.

    `reason` completes the sentence "Bash was not allowed: ...". `rule` is the
    rule's own text and `origin` the file, with line, that contains it.
    """

    behavior: Behavior
    source: Source
    reason: str
    rule: str | None = None
    origin: str | None = None
    updated_arguments: Mapping[str, Any] | None = None
    allowed_by: tuple[str, ...] = ()
    """On a DENY for want of an approval: the narrowest rules that would have allowed the call."""
    stops: str = ""
    """On a DENY: why the whole turn is to end with it, if it is."""
    needs_confinement: Confinement | None = None
    """On an ASK or a DENY: a sandbox that enforces this would change it. On an ALLOW: it applies only inside one."""
    risks: tuple[Risk, ...] = ()
    """What is dangerous about the call, the worst first, whatever becomes of it."""
    approved: bool = False
    """On an ALLOW: whether somebody approved the call, so that it need not be confined to what it declared.

    A person, whoever answers on their behalf, a hook, a rule for the command or its tool, `bypassPermissions`.
    A mode, a classifier and a rule for a path approve nothing.
    """


def of_risks(risks: tuple[Risk, ...]) -> Verdict | None:
    """What a tool thinks of a call: some risks nobody approves, critical ones a person must, others are to be seen."""
    if not risks:
        return None
    worst = next((risk for risk in risks if risk.denies), risks[0])
    words = worst.message.rstrip(".")
    reason = f"it {words[3:]}" if words.startswith("It ") else words
    critical = Behavior.ASK if worst.severity == "critical" else Behavior.ALLOW
    return Verdict(behavior=Behavior.DENY if worst.denies else critical, source="tool", reason=reason, risks=risks)


NO_OPINION = Verdict(behavior=Behavior.ASK, source="default", reason="nothing allows it")


def strictest(opinions: Iterable[Verdict | None]) -> Verdict:
    """Combine opinions; silence from everyone means ask.

    A tool can only tighten: its own ALLOW is treated as silence. An ASK
    for want of an approval is silence that gives a reason, so an approval answers it.

    >>> strictest([None, None]) is NO_OPINION
    True
    """
    strict: Verdict | None = None
    silence: Verdict | None = None
    approved = False
    risks: tuple[Risk, ...] = ()
    for opinion in opinions:
        if opinion is None:
            continue
        if opinion.risks:
            risks += opinion.risks
        if opinion.behavior is Behavior.ALLOW and opinion.source == "tool":
            continue
        if _only_lacks_approval(opinion):
            silence = opinion
            continue
        approved = approved or (opinion.approved and opinion.behavior is Behavior.ALLOW)
        if strict is None or _is_stricter(opinion, strict):
            strict = opinion
    if strict is None or (silence is not None and strict.behavior is Behavior.ALLOW and not approved):
        strict = silence or NO_OPINION
    if approved and strict.behavior is Behavior.ALLOW and not strict.approved:
        strict = replace(strict, approved=True)
    return replace(strict, risks=risks) if risks else strict


def _only_lacks_approval(opinion: Verdict) -> bool:
    """Whether it is asked about only because nobody approved it and it cannot be confined to its grants."""
    needed = opinion.needs_confinement
    return (
        opinion.behavior is Behavior.ASK
        and opinion.source == "default"
        and needed is not None
        and needed.grants is not None
    )


def _is_stricter(opinion: Verdict, other: Verdict) -> bool:
    """Of two equal ones, the one that applies only inside a sandbox is stricter."""
    if opinion.behavior is other.behavior:
        return opinion.needs_confinement is not None and other.needs_confinement is None
    return opinion.behavior > other.behavior
