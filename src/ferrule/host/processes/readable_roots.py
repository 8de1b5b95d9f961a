"""What every held command may read besides the workspace: the system, the programs on PATH, known tool chains.

The table is documented in docs/rules.md. Never the home as a whole, nor
`~/.config` or `~/.local`: a root that would open one of them is left out,
whoever names it.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from ...core.values import plain_value
from ..files.tree_index import TooManyEntries, TreeIndex

MOST_FILES: Final = 32
LARGEST: Final = 1 << 20
"""Bytes of one file that are looked at."""
_SECTION: Final = re.compile(r"\s*\[\s*([A-Za-z0-9.-]+)")
_FILES: Final = re.compile(
    r"""\s*(path|excludesfile|attributesfile|template|allowedsignersfile|mailmap|file)\s*=\s*"?([^"\n]*)""",
    re.IGNORECASE,
)
_NAMING: Final = frozenset({"include", "includeif", "core", "commit", "gpg", "mailmap"})
"""Sections in which such a key names a file that git reads by itself."""


def user_git_files(environment: Mapping[str, str], home: str) -> tuple[str, ...]:
    """Those that exist."""
    found: dict[str, None] = {}
    waiting = [path for path in _first(environment, home) if path]
    while waiting and len(found) < MOST_FILES:
        path = waiting.pop(0)
        if path in found or not os.path.isfile(path):
            continue
        found[path] = None
        waiting += _names_in(path, home)
    return tuple(found)


def _first(environment: Mapping[str, str], home: str) -> Iterator[str]:
    own = os.path.join(environment.get("XDG_CONFIG_HOME") or os.path.join(home, ".config"), "git")
    chosen = environment.get("GIT_CONFIG_GLOBAL")
    yield from (chosen,) if chosen else (os.path.join(home, ".gitconfig"), os.path.join(own, "config"))
    yield environment.get("GIT_CONFIG_SYSTEM", "")
    yield os.path.join(own, "ignore")
    yield os.path.join(own, "attributes")


def _names_in(path: str, home: str) -> Iterator[str]:
    """What the file includes, and the lists that it names."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            text = file.read(LARGEST)
    except OSError:
        return
    section = ""
    for line in text.splitlines():
        if head := _SECTION.match(line):
            section = head[1].lower().partition(".")[0]
            line = line.partition("]")[2]
        if section in _NAMING and (named := _FILES.match(line)):
            value = re.split(r"\s[#;]", named[2])[0].strip()
            if value.startswith("~/"):
                value = os.path.join(home, value[2:])
            if value and not value.startswith("~"):
                yield os.path.normpath(os.path.join(os.path.dirname(path), value))


SYSTEM: Final = (
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix", "/snap", "/etc", "/proc", "/sys",
    "/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty",
    "/run/systemd/resolve", "/run/resolvconf", "/run/NetworkManager/resolv.conf",
    "/run/NetworkManager/no-stub-resolv.conf",
    "/run/current-system", "/run/opengl-driver", "/var/lib/dpkg", "/var/lib/rpm", "/var/lib/pacman",
    "/home/linuxbrew/.linuxbrew",
)  # fmt: skip
"""Programs, libraries, settings of the system, what the kernel tells, harmless devices, the lists of packages."""

HIDDEN_IN_ETC: Final = (
    "shadow", "shadow-", "gshadow", "gshadow-", "sudoers", "sudoers.d", "security/opasswd", "krb5.keytab",
    "ssl/private", "pki/tls/private", "pki/nssdb", "letsencrypt", "wireguard", "openvpn", "ipsec.secrets",
    "ppp/pap-secrets", "ppp/chap-secrets", "wpa_supplicant", "NetworkManager/system-connections",
    "docker/key.json", "kubernetes", "rancher",
)  # fmt: skip
KEYS: Final = (".key", "_key", "-key.pem", ".p12", ".pfx", ".keytab")
"""How names of private keys end; those of hosts for ssh too."""

TOOL_CHAINS: Final = (
    ("PYENV_ROOT", ".pyenv"), ("", ".local/lib"), ("UV_PYTHON_INSTALL_DIR", ".local/share/uv/python"),
    ("UV_TOOL_DIR", ".local/share/uv/tools"), ("PIPX_HOME", ".local/share/pipx"), ("", ".local/pipx"),
    ("VIRTUAL_ENV", ""), ("CONDA_PREFIX", ""), ("", "miniconda3"), ("", "anaconda3"), ("", "miniforge3"),
    ("", "mambaforge"), ("MAMBA_ROOT_PREFIX", "micromamba"), ("", ".conda/envs"), ("", ".local/share/mamba"),
    ("NVM_DIR", ".nvm"), ("VOLTA_HOME", ".volta"), ("FNM_DIR", ".local/share/fnm"), ("", ".fnm"), ("N_PREFIX", ".n"),
    ("NODENV_ROOT", ".nodenv"), ("NPM_CONFIG_PREFIX", ".npm-global"), ("npm_config_prefix", ""),
    ("PNPM_HOME", ".local/share/pnpm"), ("", ".config/yarn/global"), ("", ".yarn"), ("BUN_INSTALL", ".bun"),
    ("DENO_INSTALL", ".deno"), ("DENO_DIR", ".cache/deno"), ("RUSTUP_HOME", ".rustup"), ("CARGO_HOME", ".cargo"),
    ("GOROOT", ""), ("", "go/bin"), ("", "go/pkg"), ("GOMODCACHE", ""), ("GOENV_ROOT", ".goenv"), ("", "sdk"),
    ("ASDF_DATA_DIR", ".asdf"), ("ASDF_DIR", ""), ("MISE_DATA_DIR", ".local/share/mise"), ("", ".config/mise"),
    ("", ".tool-versions"), ("RBENV_ROOT", ".rbenv"), ("", ".rvm"), ("GEM_HOME", ".gem"), ("", ".local/share/gem"),
    ("SDKMAN_DIR", ".sdkman"), ("JAVA_HOME", ""), ("JENV_ROOT", ".jenv"), ("", ".m2/repository"), ("", ".jdks"),
    ("DOTNET_ROOT", ".dotnet"), ("", ".nuget/packages"), ("", ".ghcup"), ("", ".cabal/bin"), ("", ".elan"),
    ("", ".opam"), ("", ".juliaup"), ("", ".julia/packages"), ("", ".pub-cache"), ("", ".config/composer/vendor"),
    ("", ".composer/vendor"), ("", ".nix-profile"), ("", ".local/state/nix"), ("HOMEBREW_PREFIX", ""),
)  # fmt: skip
"""Each by the variable that says where it is, and where it is otherwise, below the home."""

HIDDEN_IN_TOOL_CHAINS: Final = ("credentials", "credentials.toml", "auth.json", ".npmrc", "gem/credentials")
"""Below any of the roots: tokens for registries."""

LIBRARIES: Final = ("LD_LIBRARY_PATH", "PYTHONPATH", "NODE_PATH", "PERL5LIB", "RUBYLIB")
"""Lists of folders from which programs load their own parts."""
SURE_FOR: Final = 1.0
"""Seconds in which nobody installs a tool chain and uses it."""
NEVER_WHOLE: Final = (
    "",
    ".config",
    ".local",
    ".local/share",
    ".local/state",
    ".cache",
    "Documents",
    "Desktop",
    "Downloads",
)
"""Of the home: a root that is one of these, or holds one, would open other people's and other projects' files."""


@plain_value
class Roots:
    readable: tuple[str, ...]
    hidden: tuple[str, ...]
    """What lies below them and is not for reading."""
    files: tuple[str, ...] = ()
    """Readable roots that may name further ones."""


class ReadableRoots:
    """Found out when first needed, and again when PATH or git's files have changed."""

    def __init__(self, environment: Mapping[str, str], own: Iterable[str] = ()) -> None:
        """`own` are files of Ferrule that a command cannot start without."""
        self._environment = environment
        self._own = tuple(own)
        self._home = environment.get("HOME") or os.path.expanduser("~")
        self._etc = TreeIndex("/etc", _is_key)
        self._known: tuple[tuple[object, ...], Roots] | None = None
        self._sure_until = 0.0

    def current(self) -> Roots:
        known, now = self._known, time.monotonic()
        if known is not None and now < self._sure_until:
            return known[1]
        if known is None or known[0] != self._state(known[1]):
            roots = self._find()
            self._known = known = self._state(roots), roots
        self._sure_until = now + SURE_FOR
        return known[1]

    def _state(self, roots: Roots) -> tuple[object, ...]:
        """What these roots were found by: if it is the same, so are they."""
        watched = ("/etc", *_folders(self._environment.get("PATH", "")), *roots.files)
        chains = tuple(map(os.path.lexists, _tool_chains(self._environment, self._home)))
        return (*map(_time_of, watched), chains)

    def _find(self) -> Roots:
        environment, home = self._environment, os.path.realpath(self._home)
        chains = [root for root in _tool_chains(environment, home) if os.path.lexists(root)]
        listed = [path for name in LIBRARIES for path in _folders(environment.get(name, ""))]
        programs = _folders(environment.get("PATH", ""))
        roots = dict.fromkeys(os.path.realpath(path) for path in (*SYSTEM, *self._own) if os.path.exists(path))
        around = [chain for path in programs if (chain := _chain_around(path))]
        for path in (*chains, *listed, *around, *programs):
            real = os.path.realpath(path)
            if os.path.exists(real) and not opens_too_much(real, home):
                roots.setdefault(real)
        for folder in programs:
            roots |= dict.fromkeys(_targets_of_links(folder, tuple(roots), home))
        files = user_git_files(environment, home)
        roots |= dict.fromkeys(map(os.path.realpath, files))
        hidden = [path for name in HIDDEN_IN_ETC if os.path.lexists(path := f"/etc/{name}")]
        for root in map(os.path.realpath, chains):
            hidden += [path for name in HIDDEN_IN_TOOL_CHAINS if os.path.lexists(path := os.path.join(root, name))]
        return Roots(outermost(roots), tuple(dict.fromkeys((*hidden, *self._keys()))), files)

    def _keys(self) -> tuple[str, ...]:
        try:
            return self._etc.find()
        except TooManyEntries:
            return ("/etc",)


def opens_too_much(root: str, home: str) -> bool:
    """Whether the root is, or holds, something that is never read as a whole."""
    if root in ("/", "/home", "/root", "/Users", "/tmp", "/var", "/run", "/dev", "/mnt", "/media", "/srv"):
        return True
    return any(_is_below(os.path.join(home, name).rstrip("/"), root) for name in NEVER_WHOLE)


def outermost(paths: Iterable[str]) -> tuple[str, ...]:
    """Without those that lie in another.

    >>> outermost(["/usr/bin", "/usr", "/opt"])
    ('/usr', '/opt')
    """
    kept: list[str] = []
    for path in sorted(dict.fromkeys(paths), key=len):
        if not any(_is_below(path, other) for other in kept):
            kept.append(path)
    return tuple(kept)


def python_base(environment_folder: str) -> str | None:
    """The installation that a virtual environment is based on; `None` where what it names is not one."""
    try:
        with open(os.path.join(environment_folder, "pyvenv.cfg"), encoding="utf-8", errors="replace") as file:
            lines = file.read(1 << 14).splitlines()
    except OSError:
        return None
    for line in lines:
        name, _, value = line.partition("=")
        if name.strip() == "home":
            base = os.path.dirname(os.path.realpath(value.strip()))
            return base if _is_installation(base) else None
    return None


def _is_installation(folder: str) -> bool:
    """Whether it is a Python of its own: anybody can write a file that names a folder."""
    try:
        names = os.listdir(os.path.join(folder, "lib"))
    except OSError:
        return False
    return any(
        name.startswith("python") and os.path.isfile(os.path.join(folder, "lib", name, "os.py")) for name in names
    )


def _tool_chains(environment: Mapping[str, str], home: str) -> Iterator[str]:
    for variable, usual in TOOL_CHAINS:
        chosen = environment.get(variable, "") if variable else ""
        if os.path.isabs(chosen):
            yield chosen
            if variable == "VIRTUAL_ENV" and (base := python_base(chosen)):
                yield base
        if usual:
            yield os.path.join(home, usual)
    for folder in _folders(environment.get("GOPATH", "")):
        yield from (os.path.join(folder, "bin"), os.path.join(folder, "pkg"))


def _chain_around(folder: str) -> str | None:
    """The tool chain that a folder of programs belongs to by its name, whoever's home it is in."""
    parts = folder.split("/")
    names = {usual for _, usual in TOOL_CHAINS if usual.startswith(".") and "/" not in usual}
    at = next((at for at, part in enumerate(parts) if part in names), None)
    return None if at is None else "/".join(parts[: at + 1])


def _targets_of_links(folder: str, roots: tuple[str, ...], home: str) -> Iterator[str]:
    """What the links in a folder of programs lead to, with what such a program is installed with."""
    try:
        with os.scandir(folder) as entries:
            links = [entry.path for entry in entries if entry.is_symlink()]
    except OSError:
        return
    for link in links:
        target = os.path.realpath(link)
        if any(_is_below(target, root) for root in roots) or not os.path.isfile(target):
            continue
        for place in (_installation_of(target), target):
            if place and not opens_too_much(place, home):
                yield place
                break


def _installation_of(program: str) -> str | None:
    """The outermost `node_modules` around a program, or the virtual environment that it belongs to."""
    parts = program.split("/")
    if "node_modules" in parts:
        return "/".join(parts[: parts.index("node_modules") + 1])
    prefix = os.path.dirname(os.path.dirname(program))
    is_environment = os.path.basename(os.path.dirname(program)) == "bin" and (
        os.path.isfile(os.path.join(prefix, "pyvenv.cfg")) or _is_installation(prefix)
    )
    return prefix if is_environment else None


def _is_key(name: str, path: str, is_folder: bool) -> bool:
    return not is_folder and name.endswith(KEYS)


def _folders(listed: str) -> list[str]:
    """The absolute ones of a list such as PATH."""
    return list(dict.fromkeys(path for path in listed.split(os.pathsep) if os.path.isabs(path)))


def _time_of(path: str) -> tuple[str, int]:
    try:
        return path, os.stat(path).st_mtime_ns
    except OSError:
        return path, 0


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")
