"""What SGLang's processes report during a start becomes progress of the engine."""

import os
import subprocess
import sys

from sglang_omni.engines.thinker.start_reports import (
    MAX_BYTES,
    PIPE_VARIABLE,
    relay_reports,
    send_reports_to_engine,
)
from sglang_omni.system.progress import report_progress, set_progress_reporter

RANK = (
    "from sglang_omni.engines.thinker.start_reports import send_reports_to_engine;"
    "from sglang_omni.system.progress import report_progress;"
    "send_reports_to_engine();"
    "[report_progress(text) for text in ('reading', 'capturing')]"
)


def test_reports_of_ranks_arrive_once_and_in_order() -> None:
    heard: list[str] = []
    set_progress_reporter(heard.append)
    report_progress("starting")
    with relay_reports():
        for _ in range(2):
            subprocess.run([sys.executable, "-c", RANK], check=True, timeout=60)
    report_progress("warming up")
    assert heard == ["starting", "reading", "capturing", "warming up"]
    assert PIPE_VARIABLE not in os.environ


def test_without_a_reader_nothing_is_sent() -> None:
    subprocess.run([sys.executable, "-c", RANK], check=True, timeout=60)
    gone = {**os.environ, PIPE_VARIABLE: "/proc/self/fd/999"}
    subprocess.run([sys.executable, "-c", RANK], check=True, timeout=60, env=gone)


def test_the_engines_own_process_keeps_its_reporter() -> None:
    heard: list[str] = []
    set_progress_reporter(heard.append)
    with relay_reports():
        send_reports_to_engine()
    report_progress("warming up")
    assert heard == ["warming up"]


def test_a_long_report_is_one_line_and_no_descriptor_is_left() -> None:
    heard: list[str] = []
    set_progress_reporter(heard.append)
    before = os.listdir("/proc/self/fd")
    program = RANK.replace("'reading'", "'x' * 10_000")
    with relay_reports():
        subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
    assert heard == ["x" * MAX_BYTES, "capturing"]
    assert os.listdir("/proc/self/fd") == before
