"""The page as it is served: what it may do, what it is made of, and that all of it is installed."""

import re
import tomllib
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import httpx
import pytest

from sglang_omni.entrypoints.http.assets import MEDIA_TYPES
from sglang_omni.entrypoints.http.middleware.auth import Access
from sglang_omni.entrypoints.playground.routes import FOLDER
from tests.entrypoints.http.fake import Served, serving
from tests.entrypoints.http.middleware.test_auth import KEY, keys

ROOT = Path(__file__).parents[3]
FILES = sorted(path.name for path in FOLDER.iterdir())
PAGE = (FOLDER / "index.html").read_text(encoding="utf-8")
LICENSES = (FOLDER.parent / "licenses.txt").read_text(encoding="utf-8")
NAMED = {
    # Kinds of documents, which nobody asks for.
    *("http://www.w3.org/2000/svg", "http://www.w3.org/1998/Math/MathML"),
    "http://www.w3.org/1999/xhtml",
    # Of the Markdown parser: what it puts before "www.", and its message for a defect.
    *("http://", "https://github.com/markedjs/marked."),
}
"""Addresses in the files, none of which is asked for anything."""
PACKAGES = ("preact", "@preact/signals", "@preact/signals-core", "marked")


class Elements(HTMLParser):
    """Every element of a page, and the text of its scripts and styles."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.inline = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.found and self.found[-1][0] in ("script", "style"):
            self.inline += data.strip()

    def all(self, attribute: str) -> list[str]:
        return [value for _, attrs in self.found if (value := attrs.get(attribute))]


@pytest.fixture(scope="module")
def locked() -> Iterator[Served]:
    with serving(Access(keys(KEY))) as served:
        yield served


def policy_of(reply: httpx.Response) -> dict[str, list[str]]:
    """The directives of a Content-Security-Policy."""
    directives = reply.headers["content-security-policy"].split(";")
    return {name: values for name, *values in map(str.split, directives)}


@pytest.mark.parametrize("path", ["/", *(f"/playground/{name}" for name in FILES)])
def test_every_file_is_served_to_everybody_under_a_strict_policy(locked: Served, path: str) -> None:
    reply = httpx.get(locked.url + path)
    name = path.rpartition("/")[2] or "index.html"
    assert reply.status_code == 200
    assert reply.content == (FOLDER / name).read_bytes()
    assert reply.headers["content-type"] == MEDIA_TYPES[Path(name).suffix]
    policy = policy_of(reply)
    assert policy["default-src"] == ["'none'"]
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == ["'self'"]
    assert policy["frame-ancestors"] == policy["base-uri"] == policy["form-action"] == ["'none'"]
    assert policy["require-trusted-types-for"] == ["'script'"]
    allowed = {value for values in policy.values() for value in values}
    assert allowed <= {"'none'", "'self'", "'script'", "blob:"}
    assert reply.headers["x-content-type-options"] == "nosniff"
    assert reply.headers["referrer-policy"] == "no-referrer"
    assert "microphone=(self), camera=(self)" in reply.headers["permissions-policy"]


@pytest.mark.parametrize(
    "path", ["/playground/", "/playground/no.js", "/playground/..%2froutes.py", "/playground/a/b"]
)
def test_nothing_else_is_served(http: httpx.Client, path: str) -> None:
    reply = http.get(path)
    assert (reply.status_code, reply.json()["error"]["code"]) == (404, "not_found")


def test_a_file_that_the_browser_has_is_not_sent_again(http: httpx.Client) -> None:
    first = http.get("/playground/main.js")
    again = http.get("/playground/main.js", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    other = http.get("/playground/main.css", headers={"If-None-Match": first.headers["etag"]})
    assert other.status_code == 200


def test_the_page_asks_nothing_of_other_hosts_and_runs_nothing_inline() -> None:
    page = Elements(PAGE)
    assert page.inline == ""
    attributes = {name for _, attrs in page.found for name in attrs}
    assert not [name for name in attributes if name == "style" or name.startswith("on")]
    linked = [*page.all("src"), *page.all("href")]
    assert set(linked) <= {f"playground/{name}" for name in FILES}
    for name in FILES:
        text = (FOLDER / name).read_text(encoding="utf-8")
        assert set(re.findall(r"https?://[\w./-]*", text)) <= NAMED, name


def test_every_file_is_part_of_the_page() -> None:
    script = (FOLDER / "main.js").read_text(encoding="utf-8")
    linked = {
        *re.findall(r'"playground/([\w.]+)"', PAGE),
        *re.findall(r"[\"'`]playground/([\w.]+)[\"'`]", script),
    }
    imported = {
        name
        for path in FOLDER.glob("*.js")
        for name in re.findall(r"from[\"'`]\./([\w.]+)", path.read_text(encoding="utf-8"))
    }
    assert sorted({"index.html", *linked, *imported}) == FILES


def test_every_file_is_installed_with_the_licences_of_its_packages() -> None:
    about = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    patterns = about["tool"]["setuptools"]["package-data"]["sglang_omni.entrypoints.playground"]
    package = FOLDER.parent
    installed = {path for pattern in patterns for path in package.glob(pattern)}
    assert sorted(path.name for path in installed) == sorted([*FILES, "licenses.txt"])
    assert (package / "__init__.py").exists()
    for name in PACKAGES:
        assert f"{name} " in LICENSES
    assert LICENSES.count("Permission is hereby granted") >= len(PACKAGES) - 1
