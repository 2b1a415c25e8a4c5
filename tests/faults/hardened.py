"""The surroundings of a hardened container, made by a mount namespace: no container engine needed.

`python -m tests.faults.hardened TMP_SIZE SHM_SIZE COMMAND...` runs a command with every file
system read-only but a small `/tmp` and a small `/dev/shm`, as a user without a name, a home or
privileges. It needs root, and mounts.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

TREE = Path(__file__).resolve().parents[2]
NOBODY = 61_234
"""A user id that no password file has."""

SCRIPT = r"""
set -e
tmp=$1 shm=$2 python=$3 uid=$4; shift 4
mount -t tmpfs none /mnt; mkdir /mnt/python; mount --bind "$python" /mnt/python
mount -t tmpfs -o mode=755 none /root
mkdir -p "$python"; mount --move /mnt/python "$python"
awk '{print $5}' /proc/self/mountinfo | sort -ru | while read -r place; do
  case $place in /proc*|/dev|/dev/pts|/sys*) ;; *) mount -o remount,bind,ro "$place" || :;; esac
done 2>/dev/null
mount -t tmpfs -o size="$tmp",mode=1777 none /tmp
mount -t tmpfs -o size="$shm",mode=1777 none /dev/shm
cd /
exec setpriv --reuid "$uid" --regid "$uid" --clear-groups --no-new-privs \
  env -i PATH=/usr/bin:/bin PYTHONPATH="$PYTHONPATH" "$@"
"""


def can_be_hardened() -> bool:
    """Whether this machine lets the test make such surroundings."""
    if os.geteuid() != 0 or not all(map(shutil.which, ("unshare", "setpriv"))):
        return False
    if any(not place.stat().st_mode & 0o001 for place in (TREE, *TREE.parents)):
        return False
    mount = ["unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt"]
    return subprocess.run(mount, stderr=subprocess.DEVNULL).returncode == 0


def hardened(tmp: str, shm: str, *command: str) -> list[str]:
    """Return the command line that runs `command` in such surroundings."""
    # Whatever holds the interpreter; a home of root's is closed to others.
    python = str(Path(sys.base_prefix).resolve())
    sizes = (tmp, shm, python, str(NOBODY))
    return [
        "unshare",
        "-m",
        "--propagation",
        "private",
        "bash",
        "-c",
        SCRIPT,
        "-",
        *sizes,
        *command,
    ]


if __name__ == "__main__":
    command = hardened(*sys.argv[1:])
    os.execvp(command[0], command)
