"""The subset that each test belongs to, by where its file is. `pytest -m NAME` selects one."""

# Folders and files below the root of the repository; the longest path that fits decides.
SUBSETS = {
    "tests": "unit",
    # Starts no engine and takes seconds.
    "tests/faults/test_load.py": "unit",
    "tests/models": "parity",
    "tests/engines/encoder": "parity",
    "tests/engines/speech": "parity",
    "tests/engines/thinker": "parity",
    "tests/server": "server",
    "tests/entrypoints/cli": "server",
    "tests/cookbook": "programs",
    "tests/benchmarks": "programs",
    # What users measure their servers with, and what documents show.
    "tests/benchmarks/evaluation": "unit",
    "tests/benchmarks/test_charts.py": "unit",
    "tests/benchmarks/test_cost_table.py": "unit",
    "tests/entrypoints/http/test_documentation_browser.py": "browser",
    "tests/entrypoints/playground/browser": "browser",
    "tests/server/test_playground.py": "browser",
    "tests/faults": "faults",
    "tests/cluster": "cluster",
}


def subset_of(path: str) -> str:
    """Return the subset of a test file; `path` begins with `tests/`."""
    return SUBSETS[max((place for place in SUBSETS if is_below(path, place)), key=len)]


def is_left_out(path: str, expression: str) -> bool:
    """Whether all tests of a file are in a subset that the expression of `-m` excludes."""
    return f"not {subset_of(path)} " in f"{expression} "


def is_below(path: str, place: str) -> bool:
    """Return whether `path` is `place` or lies in that folder."""
    return path == place or path.startswith(f"{place}/")
