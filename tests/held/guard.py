"""A room in which harm can be tried: whatever goes wrong in it stays in it.

Processes, sockets, shared memory and host name are its own, the home of
whoever runs the tests is not there, and nothing can be written but one folder.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

CHECKOUT = str(Path(__file__).parents[2])

ROOM = r"""
set -e
base=$1 home=$2 python=$3 checkout=$4
shift 4
mount --make-rprivate /
mount --bind "$base" "$base"
hide() {  # an empty folder in the place of one, with what is needed of it inside
    local kept=()
    for needed in "$python" "$checkout"; do
        case $needed in "$1"/*)
            mkdir "$base/kept-${#kept[@]}"
            mount --bind "$needed" "$base/kept-${#kept[@]}"
            kept+=("$needed") ;;
        esac
    done
    mount -t tmpfs -o "mode=$2" tmpfs "$1"
    for at in "${!kept[@]}"; do
        mkdir -p "${kept[at]}"
        mount --move "$base/kept-$at" "${kept[at]}"
        mount -o remount,bind,ro "${kept[at]}"
        rmdir "$base/kept-$at"
    done
}
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
hide /tmp 1777
hide "$home" 755
[ -f /etc/shadow ] && [ -f "$base/shadow" ] && mount --bind "$base/shadow" /etc/shadow
mount -o remount,bind,ro /
mount --bind /proc/sys /proc/sys
mount -o remount,bind,ro /proc/sys
"$python/bin/python3" -ISc '
import fcntl, socket, struct
fcntl.ioctl(socket.socket(), 0x8914, struct.pack("16sh", b"lo", 1))'  # up
setpriv --bounding-set=-sys_module,-sys_time,-sys_boot,-sys_rawio,-syslog,-mac_admin,-mac_override -- "$@" || exit $?
"""


def inside(base: Path, command: Sequence[str]) -> list[str]:
    """The command as it is run in a room where only `base` can be written, which must not lie in /tmp."""
    spaces = ["--mount", "--pid", "--net", "--ipc", "--uts", "--fork", "--kill-child", "--mount-proc"]
    rights = [] if os.geteuid() == 0 else ["--map-root-user"]
    home = str(Path.home())
    return [
        "unshare",
        *rights,
        *spaces,
        "bash",
        "-c",
        ROOM,
        "room",
        str(base),
        home,
        sys.base_prefix,
        CHECKOUT,
        *command,
    ]


def can_be_had() -> bool:
    return all(shutil.which(name) for name in ("unshare", "setpriv", "mount"))
