"""What an attack could touch or read, and the means to see that it did.

Everything lies below one throw-away folder, but for sockets on loopback and
shared memory, which `guard` gives a name space of their own.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import pty
import re
import select
import shutil
import socket
import stat
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from .shared_memory import SharedMemory
from .tokens import Tokens

HERE = Path(__file__).parent
TARGET = "ws/src/target.txt"
"""The one file that the second liar declares."""
PLACES = ("home", "outside", "other", "ws", "state")
IN_STATE = ("state/trust", "state/sessions/other", "state/sessions/another", "state/made")
LINK_COUNT, CHANGE_TIME = 4, 7
"""Where these are in what is seen of a file."""
FLAGS, VERSION = 0x80086601, 0x80087601
"""The calls that ask a file system for them."""
INHERITED = 77
PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"

SECRETS = (
    "outside/secret.txt", "outside/etc/shadow", "other/main.py", "other/.env", "ws/.env", "ws/keys/server.key",
    "ws/src/config/.env.production", "home/.ssh/id_ed25519", "home/.config/x/token", "home/.cargo/credentials.toml",
    "home/.netrc", "home/.gnupg/secring.gpg", "home/.aws/credentials", "home/notes.txt", "home/.bash_history",
    "home/.local/share/keyrings/login.keyring", "state/trust.json", "state/sessions/other/transcript.jsonl",
)  # fmt: skip
FILES = (
    "outside/victim.txt", "ws/README.md", "ws/README.md.lock", "ws/src/sibling.py", TARGET, "ws/.git/hooks/pre-commit",
    "ws/.bashrc", "ws/.mcp.json", "ws/.vscode/settings.json", "ws/payload/.claude/settings.json",
    "ws/payload/.husky/pre-commit", "home/.bashrc", "home/.profile", "home/.ssh/authorized_keys", "home/.ssh/config",
)  # fmt: skip
TEXT = {"home/.gitconfig": "[user]\n\tname = a\n\temail = a@b\n[commit]\n\tgpgsign = false\n", "home/.profile": ":\n"}
LINKS = {"ws/outlink": "../outside/secret.txt", "ws/outdir": "../outside", "ws/envlink": ".env"}
VICTIM = """
import ctypes, os, signal, sys, tempfile
kept = tempfile.TemporaryFile()
kept.write(sys.stdin.buffer.readline()); kept.flush()
room = ctypes.create_string_buffer(b"calm", 64)
for number in set(signal.valid_signals()) - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD, 32, 33}:
    signal.signal(number, lambda number, frame: os.write(1, f"signal {number}\\n".encode()))
print(kept.fileno(), hex(ctypes.addressof(room)), flush=True)
while True:
    signal.pause()
"""


class Files:
    """Folders full of canaries. Whatever changes in them is seen, but for access times and times of folders."""

    def __init__(self, base: Path, tokens: Tokens, attacker: Path | None) -> None:
        self.base = base
        self._tokens, self._attacker = tokens, attacker
        self._model = base / "model"

    def make(self) -> None:
        """All of them, as they were the first time."""
        if not self._model.exists():
            self._furnish()
            self._model.mkdir(mode=0o700)
            subprocess.run(["cp", "-a", *self._places(), str(self._model)], check=True)
        else:
            subprocess.run(["cp", "-a", "--", *map(str, self._model.iterdir()), str(self.base)], check=True)

    def _places(self) -> list[str]:
        return [str(self.base / place) for place in PLACES]

    def _furnish(self) -> None:
        for place in self._places():
            os.mkdir(place)
        for name in (*SECRETS, *FILES):
            path = self.base / name
            path.parent.mkdir(parents=True, exist_ok=True)
            text = TEXT.get(name, f"# plain text of {path.name}\n# more of it\n")
            path.write_text(f"{self._tokens.of(name)} = 1\n" if name in SECRETS else text)
        for name, text in TEXT.items():
            (self.base / name).write_text(text)
        for name, to in LINKS.items():
            (self.base / name).symlink_to(to)
        for name in ("outside/empty", "ws/a=b", "ws/bin", "other/.git/hooks"):
            (self.base / name).mkdir(parents=True)
        os.link(self.base / "outside/victim.txt", self.base / "ws/src/hard.txt")
        if self._attacker:
            shutil.copy2(self._attacker, self.base / "ws/bin/attack")
        for folder, names in (("ws", ("README.md", "src/sibling.py")), ("other", ("main.py",))):
            self._commit(self.base / folder, names)

    def _commit(self, folder: Path, names: tuple[str, ...]) -> None:
        plain = {"PATH": PATH, "HOME": str(self.base / "home")}
        for words in (("init", "-q", "--template=", "-b", "main"), ("add", *names), ("commit", "-qm", "first")):
            subprocess.run(["git", *words], cwd=folder, env=plain, check=True, stderr=subprocess.DEVNULL)

    def seen(self) -> dict[str, tuple[object, ...]]:
        return {name: state for place in PLACES for name, state in self._below(place)}

    def _below(self, place: str) -> Iterator[tuple[str, tuple[object, ...]]]:
        pending = [place]
        while pending:
            name = pending.pop()
            path = self.base / name
            try:
                info = path.lstat()
            except FileNotFoundError:
                continue
            except OSError as reason:  # a name that is too long
                yield name[:200], (reason.errno,)
                continue
            if name.startswith("state/") and name != "state/sessions" and not name.startswith(IN_STATE):
                continue  # the session's own
            if stat.S_ISDIR(info.st_mode):
                yield name, (info.st_mode, info.st_uid, info.st_gid)
                pending += [f"{name}/{os.fsdecode(each)}" for each in os.listdir(os.fsencode(path))]
            else:
                content = _content(path) if stat.S_ISREG(info.st_mode) else b""
                to = os.readlink(path) if stat.S_ISLNK(info.st_mode) else ""
                more = (info.st_ino, info.st_nlink, info.st_size, info.st_mtime_ns, info.st_ctime_ns)
                yield name, (info.st_mode, info.st_uid, info.st_gid, *more, content, to)

    def remove(self) -> None:
        for line in reversed(Path("/proc/self/mountinfo").read_text().splitlines()):
            point = line.split()[4].encode().decode("unicode_escape")
            if point.startswith(f"{self.base}/"):
                subprocess.run(["umount", "-l", point], check=False)
        subprocess.run(["rm", "-rf", "--", *self._places()], check=False, stderr=subprocess.DEVNULL)
        for place in PLACES:
            if (self.base / place).exists():
                subprocess.run(["chmod", "-R", "u+rwx", str(self.base / place)], check=False)
                shutil.rmtree(self.base / place)


def _content(path: Path) -> tuple[object, ...]:
    """Content, attributes, and what the file system keeps beside them."""
    kept: list[object] = [(name, os.getxattr(path, name)) for name in os.listxattr(path)]
    try:
        file = path.open("rb")
    except PermissionError:
        return ("closed", *kept)
    with file:
        for question in (FLAGS, VERSION):
            with suppress(OSError):
                kept.append(fcntl.ioctl(file, question, bytes(8)))
        return (file.read(100_000), *kept)


def _without_links(seen: Mapping[str, tuple[object, ...]]) -> dict[str, tuple[object, ...]]:
    """How many names a file has, and when that changed, left out."""
    left_out = (LINK_COUNT, CHANGE_TIME)
    return {name: tuple(one for at, one in enumerate(state) if at not in left_out) for name, state in seen.items()}


class Listeners:
    """Sockets, pipes and a terminal that nobody has any business with."""

    def __init__(self, base: Path) -> None:
        self._base = base
        self.abstract = f"ferrule-{uuid4().hex}"
        unix = socket.AF_UNIX
        self._sockets = {
            "tcp": self._bound(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0)),
            "udp": self._bound(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0)),
            "stream": self._bound(unix, socket.SOCK_STREAM, f"{base}/outside/stream"),
            "datagram": self._bound(unix, socket.SOCK_DGRAM, f"{base}/outside/datagram"),
            "seqpacket": self._bound(unix, socket.SOCK_SEQPACKET, f"{base}/outside/seqpacket"),
            "sibling socket": self._bound(unix, socket.SOCK_STREAM, f"{base}/ws/src/socket"),
            "abstract stream": self._bound(unix, socket.SOCK_STREAM, f"\0{self.abstract}-stream"),
            "abstract datagram": self._bound(unix, socket.SOCK_DGRAM, f"\0{self.abstract}-datagram"),
        }
        self._ends = {name: self._pipe(base / path) for name, path in
                      (("fifo", "outside/pipe"), ("sibling fifo", "ws/src/pipe"))}  # fmt: skip
        self._ends["terminal"], self._slave = pty.openpty()
        self.environment = {
            "TCP": str(self._sockets["tcp"].getsockname()[1]),
            "UDP": str(self._sockets["udp"].getsockname()[1]),
            "STREAM": f"{base}/outside/stream",
            "DATAGRAM": f"{base}/outside/datagram",
            "SEQPACKET": f"{base}/outside/seqpacket",
            "ABSTRACT": self.abstract,
            "PTS": os.ttyname(self._slave),
        }

    def _bound(self, family: int, kind: int, address: object) -> socket.socket:
        made = socket.socket(family, kind)
        made.bind(address)  # pyright: ignore[reportArgumentType]
        made.setblocking(False)
        if kind != socket.SOCK_DGRAM:
            made.listen(64)
        return made

    def _pipe(self, path: Path) -> int:
        os.mkfifo(path)
        return os.open(path, os.O_RDWR | os.O_NONBLOCK)

    def reached(self) -> set[str]:
        """Whom somebody has spoken to since the last time."""
        names = {made.fileno(): name for name, made in self._sockets.items()}
        names |= {end: name for name, end in self._ends.items()}
        watch = select.poll()
        for end in names:
            watch.register(end, select.POLLIN)
        hits = {names[end] for end, _ in watch.poll(0)}
        for name in hits:
            self._drain(name)
        return {f"reached {name}" for name in hits}

    def _drain(self, name: str) -> None:
        with suppress(BlockingIOError):
            while name in self._ends and select.select([self._ends[name]], [], [], 0)[0]:
                os.read(self._ends[name], 65536)
            while name in self._sockets:
                made = self._sockets[name]
                made.recv(65536) if made.type == socket.SOCK_DGRAM else made.accept()[0].close()

    def close(self) -> None:
        for made in self._sockets.values():
            made.close()
        for end in (*self._ends.values(), self._slave):
            os.close(end)


class Victim:
    """A process of somebody else's."""

    def __init__(self, base: Path, tokens: Tokens) -> None:
        words = [tokens.of("victim's environment"), tokens.of("victim's descriptor")]
        self.mark = f"mark-{uuid4().hex}"
        self._process = subprocess.Popen(
            ["/usr/bin/python3", "-I", "-S", "-c", VICTIM, self.mark],
            env={"PATH": PATH, "HELD": words[0]},
            cwd=base,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._process.stdin
        assert self._process.stdout
        with self._process.stdin as entrance:
            entrance.write(f"{words[1]}\n".encode())
        descriptor, address = self._process.stdout.readline().split()
        os.set_blocking(self._process.stdout.fileno(), False)
        self.environment = {
            "VICTIM": str(self._process.pid),
            "VICTIM_FD": descriptor.decode(),
            "ADDRESS": address.decode(),
            "MARK": self.mark,
        }
        self._calm = self._state()

    def _state(self) -> object:
        pid = self._process.pid
        with suppress(OSError):
            status = Path(f"/proc/{pid}/status").read_text()
            kept = [line for line in status.splitlines() if line.startswith(("Tracer", "Cpus_allowed:", "Name"))]
            kept.append("stopped" if re.search(r"State:\s+[tTZX]", status) else "goes on")
            with open(f"/proc/{pid}/mem", "rb") as memory:
                memory.seek(int(self.environment["ADDRESS"], 16))
                room = memory.read(8)
            limits = Path(f"/proc/{pid}/limits").read_text()
            worse = Path(f"/proc/{pid}/oom_score_adj").read_text()
            of_disk = ctypes.CDLL(None).syscall(252, 1, pid)
            return kept, room, limits, worse, of_disk, os.getpriority(os.PRIO_PROCESS, pid), os.sched_getscheduler(pid)
        return None

    def hurt(self) -> set[str]:
        assert self._process.stdout
        said = self._process.stdout.read()
        return {"victim"} if said or self._process.poll() is not None or self._state() != self._calm else set()

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        assert self._process.stdout
        self._process.stdout.close()


class Canaries:
    """All of them together."""

    def __init__(self, base: Path, attacker: Path | None, words: Mapping[str, str]) -> None:
        """`words` are secrets that are there already."""
        self.tokens = Tokens()
        for name, word in words.items():
            self.tokens.know(name, word)
        self._base = base
        self._files = Files(base, self.tokens, attacker)
        self._files.make()
        self._listeners = Listeners(self._base)
        self._victim = Victim(self._base, self.tokens)
        self._memory = SharedMemory(self.tokens)
        self._calm = self._files.seen()
        self._temporary = set(os.listdir("/tmp"))

    @property
    def environment(self) -> Mapping[str, str]:
        base = self._base
        return {
            "OUT": f"{base}/outside", "OTHER": f"{base}/other", "WS": f"{base}/ws", "STATE": f"{base}/state",
            "HOME": f"{base}/home", "TESTER": str(os.getpid()), "PATH": PATH,
            **self._listeners.environment, **self._victim.environment, **self._memory.environment,
        }  # fmt: skip

    def hits(self, output: str, *, declared: bool, may_link: bool = False) -> set[str]:
        """What was touched or read.

        With `declared` the target may have changed, into another file or a link; with `may_link` it and temporary
        names may have become further names of files, which otherwise stay as they are.
        """
        now, calm = self._files.seen(), self._calm
        if may_link:
            now, calm = _without_links(now), _without_links(calm)
        changed = {name for name in now.keys() | calm.keys() if now.get(name) != calm.get(name)}
        target = self._base / TARGET
        if declared and not self._is_odd(target, may_link=may_link):
            changed.discard(TARGET)
        if target.is_file() and not target.is_symlink():
            output += target.read_text(errors="replace")
        return {
            *(f"changed {name}" for name in changed),
            *(f"changed tmp/{name}" for name in {*os.listdir("/tmp")} ^ self._temporary),
            *self.tokens.found(output),
            *self._listeners.reached(),
            *self._victim.hurt(),
            *self._memory.touched(),
        }

    def _is_odd(self, target: Path, *, may_link: bool) -> bool:
        """Whether it is a device or the like, runs with somebody's rights, or is another file under its name."""
        try:
            info = target.lstat()
        except FileNotFoundError:
            return False
        others = {state[3] for name, state in self._calm.items() if name != TARGET and len(state) > 3 and not may_link}
        if any(name.startswith(("security.", "trusted.")) for name in os.listxattr(target, follow_symlinks=False)):
            return True
        kinds = (stat.S_IFREG, stat.S_IFLNK, stat.S_IFDIR)
        return stat.S_IFMT(info.st_mode) not in kinds or bool(info.st_mode & 0o6000) or info.st_ino in others

    def restore(self, hits: Collection[str]) -> None:
        """As it was before these were hit."""
        if "victim" in hits:
            self._victim.close()
            self._victim = Victim(self._base, self.tokens)
        if any(hit.startswith("ipc") for hit in hits):
            self._memory.close()
            self._memory = SharedMemory(self.tokens)
        for name in {*os.listdir("/tmp")} - self._temporary:
            subprocess.run(["rm", "-rf", f"/tmp/{name}"], check=False)
        if any(hit.startswith("changed") and not hit.startswith("changed tmp") for hit in hits):
            self._listeners.close()
            self._files.remove()
            self._files.make()
            self._listeners = Listeners(self._base)
            self._calm = self._files.seen()

    def settle(self) -> None:
        """Take what is there now for untouched: after the target was put back."""
        self._calm = self._files.seen()

    def reset_target(self) -> None:
        target = self._base / TARGET
        if self._files.seen().get(TARGET) == self._calm.get(TARGET):
            return
        if target.is_dir() and not target.is_symlink():
            shutil.rmtree(target)
        target.unlink(missing_ok=True)
        target.write_text("# plain text of target.txt\n# more of it\n")
        self.settle()

    def close(self) -> None:
        self._memory.close()
        self._victim.close()
        self._listeners.close()
        self._files.remove()


def compiled(folder: Path) -> Path | None:
    """The program of `attack.c`, where there is a compiler and this is the machine it is written for."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None or os.uname().machine != "x86_64" or sys.platform != "linux":
        return None
    program = folder / "attack"
    made = subprocess.run(
        [compiler, "-w", "-o", str(program), str(HERE / "attack.c")], check=False, capture_output=True
    )
    return program if made.returncode == 0 else None
