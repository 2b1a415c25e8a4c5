"""The document that follows a spoken chat names the files that it really passes."""

import json
import os
import re
import time
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

import sglang_omni
from tests.server.running import RunningServer, run_server, wait_until
from tests.testing.machine import PATIENCE

ROOT = Path(__file__).parents[2]
DOCUMENT = (ROOT / "docs" / "design" / "life_of_a_request.md").read_text(encoding="utf-8")
# From the first section on, up to what other requests do.
LIFE = DOCUMENT[DOCUMENT.index("## 1. ") : DOCUMENT.index("## What differs")]
RECORDER = ROOT / "tests" / "testing" / "call_recorder"
CHAT = {
    "model": "ming-omni",
    "stream": True,
    "temperature": 0,
    "max_tokens": 64,
    "messages": [{"role": "user", "content": "What is 17 + 25?"}],
    "modalities": ["text", "audio"],
    "audio": {"voice": "default", "format": "pcm16"},
}
MAX_FILES_TO_PCM = 25
# Passed when the answer pauses while it is spoken; and every 30 s, chat or none.
TIMED = {"normalization/cuts.py", "engines/runtime/shm_cleanup.py"}
# Longer than anything else that runs at regular intervals waits.
IDLE_S = 4.0
# For what a process does after the last byte.
SETTLE_S = 1.0


@dataclass(frozen=True)
class Passed:
    """Files whose functions ran during a chat.

    Attributes:
        only: Those with a function that does not run in an idle server.
        all: Those and others.
    """

    only: frozenset[str]
    all: frozenset[str]


def record(server: RunningServer, folder: Path) -> Passed:
    """Return the files with functions that run for a chat."""
    enter(folder, "idle")
    time.sleep(IDLE_S)
    enter(folder, "chat")
    answer = httpx.post(f"{server.api}/chat/completions", json=CHAT, timeout=60 * PATIENCE)
    assert answer.text.endswith("data: [DONE]\n\n")
    time.sleep(SETTLE_S)
    enter(folder, "")
    calls: dict[str, set[tuple[str, str]]] = {"idle": set(), "chat": set()}
    for path in folder.glob("*.json"):
        for phase, found in json.loads(path.read_text(encoding="utf-8")).items():
            calls[phase] |= {(file, function) for file, function in found}
    return Passed(
        only=frozenset(file for file, _ in calls["chat"] - calls["idle"]),
        all=frozenset(file for file, _ in calls["chat"]),
    )


def enter(folder: Path, phase: str) -> None:
    """Have every process record under another name, and wait until all do."""
    before = {path: path.stat().st_mtime_ns for path in folder.glob("*.json")}
    (folder / "phase.new").write_text(phase, encoding="utf-8")
    (folder / "phase.new").replace(folder / "phase")
    wait_until(
        lambda: all(path.stat().st_mtime_ns != time_ns for path, time_ns in before.items()),
        10 * PATIENCE,
        "all processes have written",
    )
    time.sleep(SETTLE_S)


@pytest.mark.extended
def test_the_document_lists_the_files_that_a_spoken_chat_passes(tmp_path: Path) -> None:
    places = (str(RECORDER), str(ROOT), os.environ.get("PYTHONPATH", ""))
    package = Path(sglang_omni.__file__).parent
    env = {
        "CALL_RECORDER": str(tmp_path),
        "CALL_RECORDER_PACKAGE": f"{package}/",
        "PYTHONPATH": os.pathsep.join(filter(None, places)),
    }
    command = ("-m", "sglang_omni", "serve", "--version", "v1", "--device", "cpu")
    with run_server(*command, ready="/ready", env=env) as server:
        passed = record(server, tmp_path)
    listed = set(re.findall(r"`([\w/]+/\w+\.py)`", LIFE))
    assert passed.only - TIMED <= listed
    # Something that the chat needs may by chance run in the idle server as well.
    assert listed <= passed.all


def test_the_path_is_numbered_and_counted() -> None:
    path = re.findall(r"^(\d+)\. `([\w/]+\.py)`", LIFE, re.MULTILINE)
    assert [int(number) for number, _ in path] == list(range(1, len(path) + 1))
    assert len({file for _, file in path}) == len(path)
    to_pcm = re.findall(r"^\d+\. ", LIFE[: LIFE.index("## 6. ")], re.MULTILINE)
    assert len(to_pcm) <= MAX_FILES_TO_PCM
    assert f"Files 1 to {len(to_pcm)} lead" in DOCUMENT
    assert f"files {len(to_pcm) + 1} to {len(path)} lead" in DOCUMENT
