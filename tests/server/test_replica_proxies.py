"""Two default servers behind HAProxy and behind smg: routes, affinity, and a rolling restart."""

import os
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import httpx
import pytest

from tests.server.proxied_routes import (
    ANSWER_S,
    MODEL,
    QUESTION,
    ask_realtime,
    check_chat,
    check_page,
    check_private,
    check_realtime,
    check_speech,
    check_speech_stream,
    check_spoken_chat,
    check_transcription,
    open_realtime,
    post,
    read_until,
    store_voice,
)
from tests.server.replica_proxies import ADMIN_SOCKET, NAMES, run_haproxy, run_smg
from tests.server.replicas import Replica, run_replicas
from tests.server.running import call, wait_until
from tests.server.steady_load import SteadyLoad, steady_load

pytestmark = [pytest.mark.extended, pytest.mark.timeout(1200)]

SERVED_BY = "x-served-by"
# Requests a second in the rolling restart.
LOAD_PER_S = float(os.environ.get("SGLANG_OMNI_TEST_LOAD", "10"))
SENTENCE = "The mill stands by the river, and the river runs past the mill."
LONG_TEXT = " ".join([SENTENCE] * 8)
LONG_SPEECH = {"model": MODEL, "input": LONG_TEXT, "stream_format": "sse"}


def cookie(server: str) -> dict[str, str]:
    """Return the header of a caller whom a server has answered before."""
    return {"Cookie": f"omni_server={server}"}


@pytest.fixture(scope="module")
def replicas(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sequence[Replica]]:
    with run_replicas(tmp_path_factory.mktemp("voices")) as running:
        yield running


@pytest.fixture(scope="module")
def haproxy_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("haproxy")


@pytest.fixture(scope="module")
def haproxy(replicas: Sequence[Replica], haproxy_folder: Path) -> Iterator[str]:
    with run_haproxy([replica.url for replica in replicas], haproxy_folder) as url:
        yield url


@pytest.fixture(scope="module")
def smg(replicas: Sequence[Replica], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    servers = [replica.url for replica in replicas]
    with run_smg(servers, tmp_path_factory.mktemp("smg")) as url:
        yield url


CHECKS = [
    check_chat,
    check_spoken_chat,
    check_speech,
    check_transcription,
    check_realtime,
    check_speech_stream,
    check_page,
    check_private,
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_haproxy_passes(haproxy: str, check: Callable[[str], None]) -> None:
    check(haproxy)


@pytest.mark.parametrize("check", [check_chat, check_spoken_chat, check_transcription])
def test_smg_passes(smg: str, check: Callable[[str], None]) -> None:
    check(smg)


def test_smg_passes_realtime_sessions_of_callers_with_a_key(smg: str) -> None:
    check_realtime(smg, {"Authorization": "Bearer any"})


def test_smg_does_not_know_speech_voices_and_the_page(smg: str) -> None:
    body = {"model": MODEL, "input": "Hello."}
    assert httpx.post(f"{smg}/v1/audio/speech", json=body).status_code == 404
    for path in ("/", "/docs", "/v1/audio/voices", "/v1/audio/speech/stream", "/metrics"):
        assert httpx.get(f"{smg}{path}").status_code == 404, path


def test_smg_keeps_its_list_of_servers_to_itself(smg: str, replicas: Sequence[Replica]) -> None:
    assert httpx.get(f"{smg}/workers").status_code == 401
    body = {"url": replicas[0].url}
    assert httpx.post(f"{smg}/workers", json=body).status_code == 401


def test_a_browser_comes_back_to_the_server_that_answered_it_first(haproxy: str) -> None:
    first = set[str]()
    for _ in range(4):
        with httpx.Client(base_url=haproxy) as browser:
            served = [browser.get("/v1/models").headers[SERVED_BY] for _ in range(5)]
        assert len(set(served)) == 1
        first.add(served[0])
    assert first == set(NAMES)


def test_a_session_stays_with_its_server(haproxy: str) -> None:
    """Callers without cookies name their session, and responses that follow one another meet."""
    known = dict[str, str]()
    for turn in range(3):
        for number in range(6):
            session = f"caller-{number}"
            reply = httpx.get(f"{haproxy}/v1/models", headers={"x-session-id": session})
            server = reply.headers[SERVED_BY]
            assert known.setdefault(session, server) == server, (turn, session)
    assert set(known.values()) == set(NAMES)
    body = {"model": MODEL, "input": "What is 17 + 25?"}
    for session in known:
        headers = {"x-session-id": session}
        made = post(haproxy, "/v1/responses", body, headers).json()
        more = {**body, "previous_response_id": made["id"]}
        post(haproxy, "/v1/responses", more, headers)


def command_haproxy(folder: Path, command: str) -> None:
    """Send a line to HAProxy's socket, which answers an empty line."""
    with socket.socket(socket.AF_UNIX) as admin:
        admin.connect(str(folder / ADMIN_SOCKET))
        admin.sendall(f"{command}\n".encode())
        assert admin.recv(1000).strip() == b""


def test_a_server_can_be_taken_out_by_hand(haproxy: str, haproxy_folder: Path) -> None:
    """It gets no new requests, not even of callers who know it; its streams go on."""
    stream, thread = call(f"{haproxy}/v1/audio/speech", LONG_SPEECH, cookie("a"))
    wait_until(lambda: stream.started, ANSWER_S, "a stream")
    command_haproxy(haproxy_folder, "disable server omni/a")
    try:
        reply = httpx.get(f"{haproxy}/v1/models", headers=cookie("a"))
        assert reply.headers[SERVED_BY] == "b"
        thread.join()
        assert "speech.audio.done" in stream.text
    finally:
        command_haproxy(haproxy_folder, "enable server omni/a")
    wait_until(
        lambda: httpx.get(f"{haproxy}/v1/models", headers=cookie("a")).headers[SERVED_BY] == "a",
        10,
        "the server is asked again",
    )


def test_a_voice_that_one_server_stores_speaks_on_the_other_at_once(haproxy: str) -> None:
    made = store_voice(haproxy, "Shared", cookie("a"))
    body = {"model": MODEL, "input": "Hello.", "voice": "Shared", "seed": 1}
    spoken = post(haproxy, "/v1/audio/speech", body, cookie("b"))
    assert spoken.headers[SERVED_BY] == "b"
    assert len(spoken.content) > 10_000
    gone = httpx.delete(f"{haproxy}/v1/audio/voices/{made}", headers=cookie("b"))
    assert gone.status_code == 200
    refused = httpx.post(f"{haproxy}/v1/audio/speech", json=body, headers=cookie("a"))
    assert refused.headers[SERVED_BY] == "a"
    assert refused.json()["error"]["code"] == "voice_not_found"


def test_a_server_stops_when_its_caller_hangs_up(haproxy: str, replicas: Sequence[Replica]) -> None:
    body = {"model": MODEL, "input": " ".join([SENTENCE] * 4), "stream": False}
    started_at = time.monotonic()
    post(haproxy, "/v1/audio/speech", body, cookie("a"))
    whole_s = time.monotonic() - started_at
    with pytest.raises(httpx.ReadTimeout):
        httpx.post(
            f"{haproxy}/v1/audio/speech", json=body, headers=cookie("a"), timeout=whole_s / 4
        )
    wait_until(replicas[0].running.is_idle, whole_s / 4, "nothing is generated any more")


def drain_under_streams(haproxy: str, name: str, replica: Replica) -> None:
    """End a server that speaks to two callers and in a session; all of them hear it to the end."""
    url = f"{haproxy}/v1/audio/speech"
    streams = [call(url, LONG_SPEECH, cookie(name)) for _ in range(2)]
    with open_realtime(haproxy, cookie(name)) as session:
        ask_realtime(session, "Count from 1 to 9.")
        read_until(session, "response.output_audio.delta")
        wait_until(lambda: all(stream.started for stream, _ in streams), ANSWER_S, "streams")
        drained_at = time.monotonic()
        replica.drain()
        done = read_until(session, "response.done", "error")[-1]
    assert done["response"]["status"] == "completed", done
    body = {"model": MODEL, "messages": QUESTION, "max_tokens": 1}
    other = post(haproxy, "/v1/chat/completions", body, cookie(name))
    assert other.headers[SERVED_BY] != name
    for stream, thread in streams:
        thread.join()
        assert (stream.status, stream.failed_visibly) == (200, False), stream.text[-300:]
        assert "speech.audio.done" in stream.text
        assert stream.ended_at > drained_at
    assert replica.wait_ended() == 0


def summarize(load: SteadyLoad, seconds: float) -> str:
    times = sorted(one.seconds for one in load.answers)
    return (
        f"{len(times)} requests in {seconds:.0f} s, {len(load.lost)} lost; "
        f"median {times[len(times) // 2]:.3f} s, longest {times[-1]:.2f} s"
    )


def test_a_rolling_restart_loses_nothing(
    haproxy: str, haproxy_folder: Path, replicas: Sequence[Replica]
) -> None:
    started_at = time.monotonic()
    with steady_load(haproxy, LOAD_PER_S) as load:
        for name, replica in zip(NAMES, replicas, strict=True):
            wait_until(lambda: load.count(name) > LOAD_PER_S, 60, f"{name} is asked")  # noqa: B023
            drain_under_streams(haproxy, name, replica)
            replica.start()
            replica.wait_ready()
            known = load.count(name)
            wait_until(lambda: load.count(name) > known, 60, f"{name} is asked again")  # noqa: B023
    print(summarize(load, time.monotonic() - started_at))
    log = (haproxy_folder / "haproxy.log").read_text().splitlines()
    assert load.lost == [], [line for line in log if " is DOWN" in line or " is UP" in line]
    assert min(load.count(name) for name in NAMES) > LOAD_PER_S
