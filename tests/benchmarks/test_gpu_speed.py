"""`ci/gpu_speed.sh int4_all` runs its steps in order, none that might be cut off, and goes on."""

import os
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path("ci/gpu_speed.sh").resolve()
# Stands for the interpreter: it says what it is asked, and fails where `FAIL` occurs in it.
PYTHON = """#!/bin/bash
cat > /dev/null
echo "ran $*" >> "$CALLS"
case "$*" in *"${FAIL:-nothing fails}"*) exit 1 ;; *) exit 0 ;; esac
"""


class Machine:
    """A machine without a GPU, whose interpreter only remembers its commands."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.calls = folder, folder / "calls"
        python = folder / "python"
        python.write_text(PYTHON)
        python.chmod(0o755)
        self.variables = {
            **os.environ,
            "PYTHON": str(python),
            "OUT": str(folder / "out"),
            "WORK": str(folder / "work"),
            "CALLS": str(self.calls),
            "CARD": "h100",
        }

    def run(self, *phases: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", str(SCRIPT), *phases],
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            env=self.variables | variables,
        )

    def steps_done(self) -> set[str]:
        return {path.name for path in (self.folder / "work" / "done").iterdir()}


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


STEPS = "int4_parity:30 int4:40 int4_ours:60"


@pytest.mark.parametrize(
    ("name", "card"), [("NVIDIA H100 80GB HBM3", "h100"), ("NVIDIA H200", "h200")]
)
def test_the_machine_says_which_gpu_it_is(machine: Machine, name: str, card: str) -> None:
    tool = machine.folder / "nvidia-smi"
    tool.write_text(f"#!/bin/bash\necho '{name}'\n")
    tool.chmod(0o755)
    del machine.variables["CARD"]
    machine.variables["PATH"] = f"{machine.folder}:{os.environ['PATH']}"
    machine.run("int4")
    assert f"thinker_{card}_int4.json" in machine.calls.read_text()


def test_results_are_named_after_the_gpu(machine: Machine) -> None:
    done = machine.run("int4", "fp8")
    assert done.returncode == 0, done.stderr
    calls = machine.calls.read_text()
    assert "benchmarks.thinker.decoding" in calls
    assert "thinker_h100_int4.json --int4 --clients 1,16,32,64" in calls
    assert "thinker_h100_fp8.json --fp8" in calls
    assert "h200" not in calls


def test_a_step_that_might_be_cut_off_waits_for_the_next_call(machine: Machine) -> None:
    steps = "int4_parity:30 int4:600"
    first = machine.run("int4_all", INT4_STEPS=steps, BUDGET_S="100")
    assert first.returncode == 0
    assert machine.steps_done() == {"int4_parity"}
    assert "int4 may take 600 s" in first.stdout
    # The first step of a call always runs.
    again = machine.run("int4_all", INT4_STEPS=steps, BUDGET_S="100")
    assert "int4_parity was done" in again.stdout
    assert machine.steps_done() == {"int4_parity", "int4"}


def test_a_step_that_takes_too_long_is_ended(machine: Machine) -> None:
    python = machine.folder / "python"
    python.write_text(
        PYTHON.replace("case", 'case "$*" in *"-m pytest"*) sleep 60 ;; esac\ncase', 1)
    )
    done = machine.run("int4_all", INT4_STEPS="int4_parity:1 int4:40")
    assert "int4_parity failed after" in done.stdout
    assert "int4 done" in done.stdout


def test_all_steps_run_in_order_and_once(machine: Machine) -> None:
    done = machine.run("int4_all", INT4_STEPS=STEPS, BUDGET_S="540")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "--- all is done" in done.stdout
    phases = [line.split()[1] for line in done.stdout.splitlines() if line.startswith("===")]
    assert phases == ["int4_all", "int4_parity", "int4", "int4_ours"]
    again = machine.run("int4_all", INT4_STEPS=STEPS)
    assert again.stdout.count("===") == 1


def test_a_step_that_fails_is_told_and_the_others_run(machine: Machine) -> None:
    done = machine.run("int4_all", INT4_STEPS=STEPS, FAIL="-m pytest")
    assert done.returncode == 1
    assert "int4_parity failed" in done.stdout
    assert "int4 done" in done.stdout
    assert machine.steps_done() == {"int4_parity", "int4", "int4_ours"}


def test_measurements_go_on_on_another_machine(machine: Machine, tmp_path: Path) -> None:
    tilings = tmp_path / "tilings"
    measured = tilings / "NVIDIA_H100_80GB_HBM3.json"
    tilings.mkdir()
    measured.write_text("{}")
    machine.variables["TILINGS"] = str(tilings)
    steps = "tune_int4:30 int4:600"
    machine.run("int4_all", INT4_STEPS=steps, BUDGET_S="100")
    calls = machine.calls.read_text()
    assert calls.index("benchmarks.thinker.int4_kernels") < calls.index("tune_int4 --out")
    assert machine.steps_done() == {"tune_int4"}
    measured.unlink()
    tilings.rmdir()
    (tmp_path / "other").mkdir()
    other = Machine(tmp_path / "other")
    results = tmp_path / "out" / "int4_results.tar.gz"
    done = other.run("int4_all", INT4_STEPS=steps, TILINGS=str(tilings), RESUME=str(results))
    assert "tune_int4 was done" in done.stdout
    assert other.steps_done() == {"tune_int4", "int4"}
    # The tilings that were measured are there again.
    assert measured.read_text() == "{}"


@pytest.fixture
def sharing(machine: Machine) -> Machine:
    """Return a machine whose server is ready at once, with NVIDIA's Multi-Process Service."""
    tools = {
        "curl": "echo kv_tokens",
        "nvidia-cuda-mps-control": """
            [ "$*" = -d ] && said=started || read -r said
            echo "service $said in $CUDA_MPS_PIPE_DIRECTORY" >> "$CALLS"
        """,
    }
    for name, script in tools.items():
        (machine.folder / name).write_text(f"#!/bin/bash\n{script}\n")
        (machine.folder / name).chmod(0o755)
    python = PYTHON.replace("ran $*", "$* in ${CUDA_MPS_PIPE_DIRECTORY:-nothing}", 1)
    (machine.folder / "python").write_text(python)
    machine.variables["PATH"] = f"{machine.folder}:{os.environ['PATH']}"
    drawn = machine.folder / "work" / "system_int4"
    drawn.mkdir(parents=True)
    (drawn / "complete").touch()
    return machine


def list_sharing_calls(machine: Machine) -> list[str]:
    """Return what was done with the service, the server and the clients, in order."""
    names = {"sglang_omni serve": "serve", "benchmarks.serving.chats": "ask"}
    pipe = machine.folder / "work" / "mps" / "pipe"
    calls = []
    for line in machine.calls.read_text().splitlines():
        what, _, where = line.rpartition(" in ")
        short = next((name for part, name in names.items() if part in what), what)
        if short in names.values() or what.startswith("service"):
            calls.append(short + (" shared" if where == str(pipe) else ""))
    return calls


def test_a_server_is_measured_without_and_with_the_multi_process_service(sharing: Machine) -> None:
    done = sharing.run("speech_sharing")
    assert done.returncode == 0, done.stdout + done.stderr
    assert list_sharing_calls(sharing) == [
        *("serve", "ask"),
        *("service started shared", "serve shared", "ask shared", "service quit shared"),
    ]
    calls = sharing.calls.read_text()
    assert "sharing_h100_own.json --kinds text speech --clients 1,16,32" in calls
    assert "sharing_h100_mps.json --kinds text speech --clients 1,16,32" in calls
    assert "system_int4" in calls


def test_the_thinker_comes_behind_the_others_where_that_is_asked_for(sharing: Machine) -> None:
    done = sharing.run("speech_sharing", SHARING="mps_first", MPS_LATE_S="0")
    assert done.returncode == 0, done.stdout + done.stderr
    calls = list_sharing_calls(sharing)
    assert calls[0] == "service started shared"
    assert "service set_default_client_priority 1 shared" in calls
    assert calls[-1] == "service quit shared"


def test_the_service_ends_with_a_server_that_does_not_start(sharing: Machine) -> None:
    (sharing.folder / "curl").write_text("#!/bin/bash\nexit 1\n")
    done = sharing.run("speech_sharing", SHARING="mps", FAIL="sglang_omni serve")
    assert done.returncode == 1
    assert list_sharing_calls(sharing)[-1] == "service quit shared"
