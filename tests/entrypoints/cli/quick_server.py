"""`sgl-omni serve` with every check of its start, and no engines.

Run it with `python -m` and options as `NAME=VALUE`, by the names of the configuration.
"""

import sys
from pathlib import Path
from typing import Any

from sglang_omni.config.load import load_config
from sglang_omni.config.tree import Config
from sglang_omni.entrypoints.cli.serve import serve
from sglang_omni.protocol.errors import OmniError
from tests.entrypoints.cli.slow_server import SlowServer


def open_server(config: Config, checkpoint: Path) -> Any:
    print("engines would load now", flush=True)
    server = SlowServer("0", "1")
    server.config = config
    return server


if __name__ == "__main__":
    given = dict(argument.split("=", 1) for argument in sys.argv[1:])
    try:
        sys.exit(serve(load_config(None, given), open_server))
    except OmniError as error:
        print(f"sgl-omni: {error.message}", file=sys.stderr)
        sys.exit(1)
