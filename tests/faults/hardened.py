"""The surroundings of a hardened container, made by a mount namespace: no container engine needed.

`python -m tests.faults.hardened TMP_SIZE SHM_SIZE COMMAND...` runs a command with every file
system read-only but a small `/tmp` and a small `/dev/shm`, as a user without a name, a home or
privileges. It needs root, and mounts.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.server.running import wait_until

GROUP = Path(f"/sys/fs/cgroup/memory/sgl-omni-test-{os.getpid()}")
HOG_BYTES = 128 << 20
TREE = Path(__file__).resolve().parents[2]
NOBODY = 61_234
"""A user id that no password file has."""

SCRIPT = r"""
set -e
tmp=$1 shm=$2 python=$3 uid=$4; shift 4
[ -z "$MEMORY_GROUP" ] || echo $$ > "$MEMORY_GROUP/cgroup.procs"
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


@contextmanager
def memory_group() -> Iterator[Path | None]:
    """A control group to start the server in; None where this machine lets the test make none."""
    try:
        GROUP.mkdir()
    except OSError:
        yield None
        return
    try:
        yield GROUP if (GROUP / "memory.oom_control").exists() else None
    finally:
        # The last process may still be on its way out.
        wait_until(_removed, 10, "the group is removed")


@contextmanager
def no_more_memory(group: Path, victim: int) -> Iterator[None]:
    """Let a process in the group take what memory is left, so that the kernel kills `victim`."""
    fields = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
    limit = int(fields["rss"]) + HOG_BYTES // 2
    Path(f"/proc/{victim}/oom_score_adj").write_text("1000")
    (group / "memory.limit_in_bytes").write_text(str(limit))
    hog = f'echo $$ > {group}/cgroup.procs; exec "$0" -c "$1"'
    takes = f"import time; taken = b'x' * {HOG_BYTES}; time.sleep(600)"
    with subprocess.Popen(["bash", "-c", hog, sys.executable, takes]) as process:
        try:
            yield
        finally:
            process.kill()
            (group / "memory.limit_in_bytes").write_text("-1")


def _removed() -> bool:
    try:
        GROUP.rmdir()
    except OSError:
        return False
    return True


if __name__ == "__main__":
    command = hardened(*sys.argv[1:])
    os.execvp(command[0], command)
