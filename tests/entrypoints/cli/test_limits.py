"""`sgl-omni serve` with limits of keys and an audit log, given as users give them."""

import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import httpx

from tests.server.running import HTTP, free_port, wait_until
from tests.testing.golden import TINY

ROOT = Path(__file__).parents[3]
KEY = "a-key-of-a-user"
CHAT = {"model": "org/ming", "messages": [{"role": "user", "content": "hello"}]}
# The command line as it is, over a server that starts no engines.
SERVE = """
import sys
from sglang_omni.entrypoints.cli.main import main
from sglang_omni.entrypoints.cli import serve
from tests.entrypoints.cli.slow_server import SlowServer

class NoEngines(SlowServer):
    def __init__(self, config, checkpoint):
        super().__init__("1", "1")
        self.config = config

serve.serve.__defaults__ = (NoEngines,)
sys.exit(main())
"""


def test_limits_and_the_audit_log_hold_as_given(tmp_path: Path) -> None:
    port, log = free_port(), tmp_path / "audit.jsonl"
    arguments = ["serve", "--version", "v1", "--model-path", str(TINY), "--port", str(port)]
    arguments += ["--device", "cpu", "--api-key", "env:LIMITS_TEST_KEY", "--audit-log", str(log)]
    arguments += ["--rate_limit.requests_per_minute", "1", "--log-folder", str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "LIMITS_TEST_KEY": KEY}
    command = [sys.executable, "-c", SERVE, *arguments]
    process = subprocess.Popen(command, cwd=ROOT, env=environment)
    url = f"http://127.0.0.1:{port}"

    def is_ready() -> bool:
        assert process.poll() is None, f"it ended with {process.returncode}"
        try:
            return HTTP.get(f"{url}/ready").status_code == 200
        except httpx.HTTPError:
            return False

    try:
        wait_until(is_ready, 60, "it serves")
        headers = {"Authorization": f"Bearer {KEY}"}
        chats = f"{url}/v1/chat/completions"
        statuses = [HTTP.post(chats, json=CHAT, headers=headers).status_code for _ in range(2)]
        statuses.append(HTTP.post(chats, json=CHAT).status_code)
        assert statuses == [200, 429, 401]
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
    finally:
        process.kill()
        process.wait()
    entries = [json.loads(line) for line in log.read_text().splitlines()]
    reasons = [entry["reason"] for entry in entries]
    assert reasons == ["rate_limit_requests", "invalid_api_key"]
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
