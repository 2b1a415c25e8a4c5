"""The documents are a site: it builds without warnings, and readers find their answers in it."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
# What operators and users ask, the page that answers it, and words of the answer.
QUESTIONS = {
    "How do I hear it?": ("index.md", "make serve"),
    "How do I talk to it in a browser?": ("playground.md", "**Talk**"),
    "What can the bundled model do?": ("faq.md", "Ming-mini has 64 MB"),
    "How many callers fit one H200?": ("hardware.md", "32 spoken answers a"),
    "What does one H100 carry?": ("hardware.md", "one H100 (80 GB)"),
    "How do I put it behind nginx?": ("deployment.md", "nginx"),
    "How do I run it in Kubernetes?": ("deployment.md", "helm install"),
    "How do I clone a voice?": ("guide.md", "audio_sample=@me.wav"),
    "What happens when an engine dies?": ("running.md", "An engine that dies"),
    "How do I limit what a key may do?": ("guide.md", "--rate_limit.requests_per_minute"),
    "How do I halve the memory of the thinker?": ("quantization.md", "sgl-omni quantize"),
    "Which fields of OpenAI are ignored?": ("reference.md", "Fields of other programs"),
    "Is it faster than the others?": ("comparison.md", "In the same run"),
    "Why does the speech have gaps?": ("troubleshooting.md", "gaps in the speech"),
    "What is not there?": ("limits.md", "WebRTC"),
}


def read_nav() -> list[str]:
    """The pages of the navigation."""
    # The theme's icons have tags of their own.
    config = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    return [
        next(iter(page.values())) if isinstance(page, dict) else page
        for section in config["nav"]
        for page in next(iter(section.values()))
    ]


def test_the_site_builds_without_warnings(tmp_path: Path) -> None:
    pytest.importorskip("material", reason="the extra `docs` brings it")
    command = (sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(tmp_path))
    environment = {"NO_MKDOCS_2_WARNING": "1", "PATH": "/usr/bin:/bin"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    pages = list(tmp_path.rglob("*.html"))
    assert len(pages) > len(read_nav())
    # A page without a network: no style, script or picture of another host.
    loaded = re.compile(
        r"<(?:script|img|link)[^>]*(?:src|href)=\"(https?:)?//[^\"]+", re.IGNORECASE
    )
    for page in pages:
        found = [one[0] for one in loaded.finditer(page.read_text(encoding="utf-8"))]
        assert [one for one in found if "canonical" not in one] == []


def test_every_document_is_in_the_navigation() -> None:
    documents = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}
    assert documents == set(read_nav())


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_reader_finds_the_answer_within_two_clicks(question: str) -> None:
    page, words = QUESTIONS[question]
    # A section, then a page: two clicks.
    assert page in read_nav()
    assert words in (DOCS / page).read_text(encoding="utf-8")


MAX_PROSE = 45
"""Lines of a hundred characters: about one screen."""
LISTS = {"reference.md", "design/life_of_a_request.md"}
"""Lists of routes, options and files, which are looked up and not read."""


def longest_prose(page: Path) -> float:
    """Return the lines of prose between two examples, tables or pictures of a page, at most."""
    longest = current = 0.0
    is_code = False
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.startswith("```"):
            is_code = not is_code
        if is_code or line.startswith(("```", "|", "![")):
            current = 0.0
        elif line.strip():
            current += max(1.0, len(line) / 100)
            longest = max(longest, current)
    return longest


@pytest.mark.parametrize("name", sorted(set(read_nav()) - LISTS))
def test_an_example_is_never_more_than_a_screen_away(name: str) -> None:
    assert longest_prose(DOCS / name) <= MAX_PROSE
