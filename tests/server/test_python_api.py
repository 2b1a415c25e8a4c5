"""The Python API with real engines: those of the tiny checkpoint, on the CPU."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from sglang_omni import AsyncOmni, Omni
from sglang_omni.pipeline.request import AudioDelta, TextDelta
from sglang_omni.protocol.errors import EngineUnavailable, InvalidRequest, StartupError
from tests.entrypoints.realtime.sounds import silence
from tests.server.running import wait_until
from tests.testing.golden import TINY
from tests.testing.machine import PATIENCE

ROOT = Path(__file__).parents[2]
OPTIONS: dict[str, Any] = {"device": "cpu", "talker": {"max_patches": 8}}
ENGINE_MODULE = "sglang_omni.engines.runtime.engine_main"
# In the background of a shell SIGINT is ignored, and what a test starts there inherits that.
SCRIPT = f"""
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from sglang_omni import Omni
print("starts", flush=True)
omni = Omni({str(TINY)!r}, device="cpu", text_only=True)
print("started", omni.chat("Hello.", max_tokens=4).finish_reason, flush=True)
"""


@pytest.fixture(scope="module")
def omni() -> Iterator[Omni]:
    with Omni(TINY, **OPTIONS) as omni:
        yield omni


def engines() -> list[psutil.Process]:
    """The engine processes of this process, and what they started."""
    return psutil.Process().children(recursive=True)


def is_idle(omni: Omni) -> bool:
    """Whether no engine works on a request."""
    states = omni._omni._server.engines()
    thinker, talker = states["thinker"]["counters"], states["talker"]["counters"]
    return thinker["running"] == 0 and talker["active_slots"] == 0


def test_it_chats_with_text_and_speech(omni: Omni) -> None:
    answer = omni.chat("Hello.", max_tokens=6, temperature=0)
    assert answer.finish_reason in ("stop", "length")
    assert answer.usage.completion_tokens <= 6
    assert answer.audio is None
    spoken = omni.chat("Hello.", max_tokens=6, temperature=0, voice="default", seed=1)
    assert (spoken.text, spoken.sample_rate) == (answer.text, omni.sample_rate)
    assert spoken.audio is not None


def test_a_streamed_answer_is_the_whole_one(omni: Omni) -> None:
    arguments: dict[str, Any] = {"max_tokens": 6, "temperature": 0, "voice": "default", "seed": 1}
    whole = omni.chat("Hello.", **arguments)
    pieces = list(omni.chat("Hello.", stream=True, **arguments))
    assert "".join(piece.text for piece in pieces if isinstance(piece, TextDelta)) == whole.text
    chunks = [piece.pcm for piece in pieces if isinstance(piece, AudioDelta)]
    assert whole.audio is not None
    np.testing.assert_array_equal(np.concatenate([np.zeros(0, np.float32), *chunks]), whole.audio)


def test_it_speaks_the_same_for_a_seed(omni: Omni) -> None:
    speech = omni.speak("Hello there.", voice=omni.voices[0], seed=7)
    chunks = list(speech)
    again = omni.speak("Hello there.", voice=omni.voices[0], seed=7).read()
    assert again.size > 0.3 * omni.sample_rate
    np.testing.assert_allclose(np.concatenate(chunks), again, atol=1e-4)


def test_it_transcribes_samples(omni: Omni) -> None:
    assert omni.transcribe(silence(1.0), sample_rate=16_000) == ""
    speech = omni.speak("Hello there.", seed=7).read()
    assert isinstance(omni.transcribe(speech, sample_rate=omni.sample_rate), str)


def test_it_takes_pictures(omni: Omni, tmp_path: Path) -> None:
    from PIL import Image

    Image.new("RGB", (64, 64), "red").save(tmp_path / "red.png")
    answer = omni.chat("What is this?", images=[tmp_path / "red.png"], max_tokens=4)
    assert answer.usage.prompt_image_tokens > 0
    with pytest.raises(InvalidRequest) as refused:
        omni.chat("What is this?", images=[b"no picture"])
    assert refused.value.param == "images.0"


def test_a_stream_that_is_left_is_aborted_in_the_engines(omni: Omni) -> None:
    for _ in omni.chat("Hello.", max_tokens=2000, stream=True):
        break
    for _ in omni.speak("Hello there, and good evening to everybody."):
        break
    wait_until(lambda: is_idle(omni), 10 * PATIENCE, "the engines are idle")


@pytest.mark.extended
async def test_objects_follow_one_another_and_leave_nothing(omni: Omni) -> None:
    """The asynchronous twin, while another object runs; then a start that fails."""
    before = set(engines())
    async with AsyncOmni(TINY, text_only=True, **OPTIONS) as second:
        assert (await second.chat("Hello.", max_tokens=4)).usage.completion_tokens
        assert set(engines()) > before
    assert set(engines()) == before
    with pytest.raises(StartupError):
        Omni(TINY, device="cpu", thinker={"server_args": {"no_such_argument": 1}})
    assert set(engines()) == before


@pytest.mark.extended
def test_closing_ends_every_process() -> None:
    before = set(engines())
    omni = Omni(TINY, text_only=True, **OPTIONS)
    began = time.monotonic()
    omni.close()
    omni.close()
    assert time.monotonic() - began < 15 * PATIENCE
    assert set(engines()) == before
    with pytest.raises(EngineUnavailable):
        omni.chat("Hello.")


def has_engine(family: psutil.Process) -> bool:
    """Return whether a child is an engine, and not a program that some import runs."""
    for child in family.children():
        with suppress(psutil.Error):
            if ENGINE_MODULE in child.cmdline():
                return True
    return False


@pytest.mark.extended
@pytest.mark.parametrize("when", ["never", "while it starts"])
def test_a_script_leaves_no_process(when: str, tmp_path: Path) -> None:
    """One that ends without closing, and one that is interrupted."""
    script = tmp_path / "script.py"
    # On a busy machine the engines may be ready before the signal; the script must not have ended.
    script.write_text(SCRIPT if when == "never" else f"{SCRIPT}import time\ntime.sleep(600)\n")
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, text=True, env=env
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "starts\n"
        family = psutil.Process(process.pid)
        if when == "never":
            assert process.stdout.readline().startswith("started")
        else:
            wait_until(lambda: has_engine(family), 60 * PATIENCE, "engines start")
        children = family.children(recursive=True)
        assert children
        if when == "while it starts":
            process.send_signal(signal.SIGINT)
            # Those that it may have started since. None if it has ended already.
            children += family.children(recursive=True)
        process.wait(60 * PATIENCE)
    assert (process.returncode == 0) == (when == "never")
    _, alive = psutil.wait_procs(children, timeout=10 * PATIENCE)
    assert not alive
