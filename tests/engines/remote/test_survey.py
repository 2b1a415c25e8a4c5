"""The survey of a cluster ends in time, and says what failed."""

import json
import os
import socket
import sys
from pathlib import Path

import pytest

from sglang_omni.engines.remote import survey
from sglang_omni.engines.remote.node_report import NodeReport, report_machine
from sglang_omni.engines.remote.ray_nodes import describe_machine
from sglang_omni.engines.remote.survey import REPORTS, read_answer, survey_cluster
from sglang_omni.protocol.errors import StartupError
from sglang_omni.version import package_version
from tests.placement.clusters import cards_of, node, server_node

ADDRESS = "10.0.0.1:6379"


def answer(*reports: NodeReport) -> str:
    return json.dumps({"nodes": REPORTS.dump_python(reports, mode="json")})


def test_reports_arrive_as_they_were_sent() -> None:
    sent = (node("c", None, error="gone"), server_node(cards_of(80, 2)), node("b", ()))
    assert read_answer(ADDRESS, answer(*sent), "") == (sent[1], sent[2], sent[0])


def test_an_error_of_the_survey_is_the_error() -> None:
    with pytest.raises(StartupError, match=r"^no Ray here$"):
        read_answer(ADDRESS, json.dumps({"error": "no Ray here"}), "")


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"nodes": [{"name": 1}]}', "killed"])
def test_what_is_no_answer_is_told_with_what_was_printed(text: str) -> None:
    with pytest.raises(StartupError, match=rf"(?s){ADDRESS}: the survey .* failed: .*Segm"):
        read_answer(ADDRESS, text, "...\nSegmentation fault\n")


def test_a_survey_that_hangs_is_ended(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = "import os, pathlib, sys, time; "
    program += "pathlib.Path(sys.argv[2]).write_text(str(os.getpid())); time.sleep(600)"
    (tmp_path / "hanging.py").write_text(program)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(survey, "SURVEY_MODULE", "hanging")
    with pytest.raises(StartupError, match=rf"did not answer within 3 s; .*--address {ADDRESS}"):
        survey_cluster(ADDRESS, [tmp_path / "pid"], 3.0)
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("127.0.0.1:1", r"127\.0\.0\.1:1: nothing answers there \(.*refused\)"),
        ("auto", "must be HOST:PORT, not 'auto'"),
        ("node-a", "must be HOST:PORT, not 'node-a'"),
    ],
)
def test_an_address_without_a_cluster_is_told_at_once(address: str, reason: str) -> None:
    with pytest.raises(StartupError, match=reason):
        survey_cluster(address, [], 30.0)


def test_without_ray_it_is_told_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "ray.py").write_text("raise ImportError('there is none')")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *filter(None, sys.path)]))
    missing = r"pip install 'sglang_omni\[cluster\]'.*there is none"
    with socket.create_server(("127.0.0.1", 0)) as server:
        host, port = server.getsockname()
        with pytest.raises(StartupError, match=missing):
            survey_cluster(f"{host}:{port}", [])


def test_a_machine_tells_its_version_and_what_it_lacks(tmp_path: Path) -> None:
    there, gone = tmp_path / "model", tmp_path / "ca.pem"
    there.mkdir()
    report = report_machine([there, gone])
    assert report.version == package_version()
    assert report.missing == (str(gone),)
    assert report_machine([there]).missing == ()


def test_gpus_hidden_by_ray_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    from sglang_omni.engines.remote import node_report

    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    seen: list[str | None] = []

    def list_gpus() -> tuple[()]:
        seen.append(os.environ.get("CUDA_VISIBLE_DEVICES"))
        return ()

    monkeypatch.setattr(node_report, "list_visible_gpus", list_gpus)
    describe_machine([])
    assert seen == [None]
