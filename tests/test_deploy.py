"""What is in `deploy/`: rules, units, proxies and charts are what their own programs take."""

import importlib
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from sglang_omni.entrypoints.cli.main import build_parser
from tests.observability.test_dashboard import list_series, list_used_series

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"
CHART = DEPLOY / "helm" / "sglang-omni"
GO_PATH = Path("/usr/share/gocode")


def run(*command: str | Path, **options: Any) -> str:
    """Run a program that must succeed, and return what it printed."""
    texts = [str(one) for one in command]
    done = subprocess.run(texts, capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def find_program(name: str) -> str:
    """Return the path of a program, or skip the test."""
    found = shutil.which(name, path="/usr/local/sbin:/usr/sbin:/usr/local/bin:/usr/bin:/bin")
    beside = Path(sys.executable).with_name(name)
    if found is None and not beside.exists():
        pytest.skip(f"there is no {name} here")
    return found or str(beside)


def render_chart(*values: Path) -> list[dict[str, Any]]:
    """Return the objects of the chart."""
    find_program("go")
    if not (GO_PATH / "src/github.com/Masterminds/sprig").is_dir():
        pytest.skip("there are no template functions of Go here")
    script = ROOT / "ci" / "deploy" / "render_chart.go"
    environment = {
        "GO111MODULE": "off",
        "GOPATH": str(GO_PATH),
        "HOME": "/tmp",
        "PATH": "/usr/bin:/bin",
    }
    text = run("go", "run", script, CHART, *values, env=environment)
    return [one for one in yaml.safe_load_all(text) if one]


def test_alerts_are_raised_when_they_should_be() -> None:
    promtool = find_program("promtool")
    run(promtool, "check", "rules", DEPLOY / "prometheus" / "alerts.yaml")
    run(promtool, "test", "rules", DEPLOY / "prometheus" / "alerts_test.yaml")
    run(promtool, "check", "config", "--syntax-only", DEPLOY / "prometheus" / "prometheus.yaml")


def test_alerts_name_series_that_exist() -> None:
    rules = yaml.safe_load((DEPLOY / "prometheus" / "alerts.yaml").read_text())
    alerts = [rule for group in rules["groups"] for rule in group["rules"]]
    assert len(alerts) >= 9
    assert list_used_series(rule["expr"] for rule in alerts) - list_series() == set()
    tested = (DEPLOY / "prometheus" / "alerts_test.yaml").read_text()
    assert [rule["alert"] for rule in alerts if rule["alert"] not in tested] == [
        "OmniEventLoopStalls"
    ]
    assert all(rule["annotations"]["description"] for rule in alerts)


def test_the_dashboard_is_what_its_program_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(DEPLOY / "grafana")
    program = importlib.import_module("build_dashboard")
    written = json.loads((DEPLOY / "grafana" / "dashboard.json").read_text())
    assert written == json.loads(json.dumps(program.build_dashboard()))


def test_the_docker_file_has_no_mistakes_that_are_known() -> None:
    options = ("--config", DEPLOY / "docker" / "hadolint.yaml")
    run(find_program("hadolint"), *options, DEPLOY / "docker" / "Dockerfile")


@pytest.mark.parametrize("target", ["cpu", "cuda"])
def test_images_serve_without_privileges(target: str) -> None:
    stages = re.split(r"^FROM ", (DEPLOY / "docker" / "Dockerfile").read_text(), flags=re.MULTILINE)
    (stage,) = (one for one in stages if one.split("\n")[0].endswith(f" AS {target}"))
    assert "USER 10001" in stage
    assert "/ready" in stage[stage.index("HEALTHCHECK") :]
    (entry,) = re.findall(r"^ENTRYPOINT (.*)$", stage, re.MULTILINE)
    program, *arguments = json.loads(entry)
    assert program == "sgl-omni"
    # It exits if there is no such option.
    build_parser().parse_args(arguments)


def test_what_the_image_is_built_of_is_not_ignored() -> None:
    ignore = (ROOT / ".dockerignore").read_text().splitlines()
    kept = {line[1:] for line in ignore if line.startswith("!")}
    assert all((ROOT / one).exists() for one in kept)
    build = yaml.safe_load((DEPLOY / "docker" / "compose.yaml").read_text())["services"]["omni"][
        "build"
    ]
    context = (DEPLOY / "docker" / build["context"]).resolve()
    assert context == ROOT
    assert (context / build["dockerfile"]).exists()


def test_files_that_compose_mounts_exist() -> None:
    services = yaml.safe_load((DEPLOY / "docker" / "compose.yaml").read_text())["services"]
    mounted = [
        volume.split(":")[0]
        for service in services.values()
        for volume in service["volumes"]
        if volume.startswith(".")
    ]
    assert len(mounted) == 5
    assert all((DEPLOY / "docker" / one).is_file() for one in mounted)


@pytest.mark.parametrize(
    "name", ["sglang-omni.service", "sglang-omni-node.service", "sglang-omni-ray.service"]
)
def test_the_unit_is_one_that_systemd_takes(name: str, tmp_path: Path) -> None:
    unit = (DEPLOY / "systemd" / name).read_text()
    # The program must exist where the unit is checked.
    copy = tmp_path / name
    copy.write_text(re.sub("/opt/omni/bin/(sgl-omni|ray)", "/bin/true", unit))
    assert "sglang-omni" not in run(find_program("systemd-analyze"), "verify", copy)


def test_nginx_takes_its_file(tmp_path: Path) -> None:
    nginx = find_program("nginx")
    file = tmp_path / "nginx.conf"
    included = DEPLOY / "nginx" / "sglang-omni.conf"
    file.write_text(f"pid {tmp_path}/pid;\nevents {{}}\nhttp {{ include {included}; }}\n")
    run(nginx, "-t", "-c", file, "-e", tmp_path / "error.log")


def test_caddy_takes_its_file() -> None:
    caddy = find_program("caddy")
    run(caddy, "validate", "--adapter", "caddyfile", "--config", DEPLOY / "caddy" / "Caddyfile")


def test_haproxy_takes_its_file() -> None:
    printed = run(find_program("haproxy"), "-c", "-f", DEPLOY / "haproxy" / "haproxy.cfg")
    assert "WARNING" not in printed


def test_haproxy_leaves_streams_to_a_server_that_drains() -> None:
    lines = (DEPLOY / "haproxy" / "haproxy.cfg").read_text().splitlines()
    settings = " ".join(line for line in lines if not line.strip().startswith("#"))
    assert "shutdown-sessions" not in settings
    # A connection that broke may have been a request that ran: it is not sent again.
    assert "retry-on conn-failure 503 " in settings


@pytest.mark.parametrize("values", [(), ("all_values.yaml",)])
def test_the_chart_makes_valid_objects(values: tuple[str, ...]) -> None:
    validate = pytest.importorskip("kubernetes_validate")
    objects = render_chart(*(ROOT / "ci" / "deploy" / name for name in values))
    kinds = [one["kind"] for one in objects]
    assert {"ConfigMap", "Deployment", "Service"} <= set(kinds)
    assert ("PodMonitor" in kinds) == ("HorizontalPodAutoscaler" in kinds) == bool(values)
    for one in objects:
        # Prometheus' own kind has no schema of Kubernetes.
        if one["kind"] != "PodMonitor":
            validate.validate(one, "1.33", strict=True)


def test_the_chart_gives_a_server_time_to_drain() -> None:
    (deployment,) = (one for one in render_chart() if one["kind"] == "Deployment")
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    arguments = container["args"]
    drain = int(arguments[arguments.index("--drain-timeout") + 1])
    hook = int(container["lifecycle"]["preStop"]["exec"]["command"][1])
    assert pod["terminationGracePeriodSeconds"] > drain + hook
    assert container["securityContext"]["readOnlyRootFilesystem"]
    assert container["resources"]["limits"]["nvidia.com/gpu"] == 1
    # It exits if there is no such option.
    build_parser().parse_args(["serve", "--version", "v1", *arguments])


def read_values() -> Iterator[str]:
    """Yield the lines of the chart's values that set something."""
    for line in (CHART / "values.yaml").read_text().splitlines():
        if re.match(r"^[a-zA-Z]+:", line):
            yield line.split(":")[0]


def test_every_value_of_the_chart_is_used() -> None:
    templates = "".join(path.read_text() for path in (CHART / "templates").iterdir())
    assert [name for name in read_values() if f".Values.{name}" not in templates] == []
