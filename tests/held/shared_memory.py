"""Shared memory, queues and semaphores as canaries."""

from __future__ import annotations

import ctypes
import os
import select
import shutil
from pathlib import Path
from uuid import uuid4

from .tokens import Tokens

KEY = 0x1F2E3D


class SharedMemory:
    """System V and POSIX memory, queues and semaphores."""

    def __init__(self, tokens: Tokens) -> None:
        self._library = library = ctypes.CDLL(None, use_errno=True)
        library.shmat.restype = ctypes.c_void_p
        self._word = tokens.of("shared memory").encode()
        self._memory = library.shmget(KEY, 4096, 0o1666)
        self._queue = library.msgget(KEY, 0o1666)
        self._semaphore = library.semget(KEY, 1, 0o1666)
        assert min(self._memory, self._queue, self._semaphore) >= 0, os.strerror(ctypes.get_errno())
        self._at = library.shmat(self._memory, None, 0)
        ctypes.memmove(self._at, self._word, len(self._word))
        library.msgsnd(self._queue, ctypes.c_char_p(b"\1" + bytes(7) + b"calm"), 4, 0)
        self._name = f"ferrule-{uuid4().hex}"
        self._file = Path("/dev/shm") / self._name
        self._file.write_text(tokens.of("posix memory") + "\n")
        how = os.O_RDWR | os.O_CREAT | os.O_NONBLOCK
        self._posix_queue = library.mq_open(f"/{self._name}".encode(), how, 0o666, None)
        assert self._posix_queue >= 0, os.strerror(ctypes.get_errno())
        library.mq_send(self._posix_queue, b"calm", 4, 0)
        self.environment = {"IPC": str(KEY), "SHM": self._name, "QUEUE": f"/{self._name}"}
        self._calm = self._state()

    def _state(self) -> dict[str, object]:
        tables = {name: Path("/proc/sysvipc", name).read_text().splitlines()[1:] for name in ("shm", "msg", "sem")}
        rows = {name: [line.split() for line in lines] for name, lines in tables.items()}
        own = {name: [row[:3] for row in lines if row[0] == str(KEY)] for name, lines in rows.items()}
        value = self._library.semctl(self._semaphore, 0, 12)
        text = ctypes.string_at(self._at, len(self._word))
        waiting = [row[3:5] for row in rows["msg"] if row[0] == str(KEY)]
        watch = select.poll()
        watch.register(self._posix_queue, select.POLLIN)
        return {
            "memory": (text, own["shm"], [row[9:10] for row in rows["shm"] if row[0] == str(KEY)]),
            "queue": (own["msg"], waiting),
            "semaphore": (own["sem"], value),
            "posix queue": (os.pread(self._posix_queue, 200, 0), self._opens_again()),
            "posix memory": sorted((e.name, e.stat().st_ctime_ns) for e in os.scandir("/dev/shm")),
            "left behind": [len(lines) for lines in rows.values()],
        }

    def _opens_again(self) -> bool:
        again = self._library.mq_open(f"/{self._name}".encode(), os.O_RDONLY)
        if again >= 0:
            os.close(again)
        return again >= 0

    def touched(self) -> set[str]:
        now = self._state()
        return {f"ipc {name}" for name, state in now.items() if state != self._calm[name]}

    def close(self) -> None:
        self._library.shmdt(ctypes.c_void_p(self._at))
        os.close(self._posix_queue)
        self._library.mq_unlink(f"/{self._name}".encode())
        for entry in os.scandir("/dev/shm"):
            shutil.rmtree(entry.path) if entry.is_dir() else os.unlink(entry.path)
        for name, remove in (("shm", "shmctl"), ("msg", "msgctl"), ("sem", "semctl")):
            for line in Path("/proc/sysvipc", name).read_text().splitlines()[1:]:
                number = int(line.split()[1])
                getattr(self._library, remove)(number, 0, 0, 0)
