"""Implements `sgl-omni node`: the thinker's ranks of a machine other than the first.

The first machine runs `sgl-omni serve` with the same configuration. It decides when ranks start and
end; this program connects to it, again and again, and starts what it asks for.
"""

import time

from sglang_omni.config.config_errors import make_option_error
from sglang_omni.config.tree import Config
from sglang_omni.engines.remote.contract import RemoteSettings
from sglang_omni.engines.remote.host import Launch, serve_engine
from sglang_omni.engines.remote.links import Tokens
from sglang_omni.entrypoints.startup.checkpoint import find_checkpoint
from sglang_omni.protocol.errors import StartupError
from sglang_omni.serving.thinker_config import build_thinker_spec

# How often to try to connect.
RETRY_S = 1.0


def run_node(config: Config, rank: int) -> int:
    """Run the ranks of the machine number `rank` until Ctrl-C or SIGTERM.

    Raises:
        StartupError: The configuration has no such machine, or the checkpoint is not here.
    """
    launch = build_launch(config, rank)
    host, port = launch.address
    print(f"machine {rank}: waiting for the server at {host}:{port}", flush=True)
    while True:
        try:
            reason = serve_engine(launch)
            print(f"machine {rank}: its ranks ended ({reason}); waiting", flush=True)
        except StartupError as error:
            # The server listens only while it starts its ranks.
            if not isinstance(error.__cause__, ConnectionRefusedError):
                print(f"machine {rank}: {error.message}", flush=True)
        time.sleep(RETRY_S)


def build_launch(config: Config, rank: int) -> Launch:
    """Return what starts the ranks of a machine. Raises `StartupError`."""
    checkpoint = find_checkpoint(config.model_path)
    spec = build_thinker_spec(config, checkpoint)
    if not 1 <= rank <= len(spec.companions):
        raise make_option_error(
            "thinker.nodes",
            f"--rank {rank}: thinker.nodes is {config.thinker.nodes}; the machines besides the "
            "first have the ranks from 1",
        )
    settings: RemoteSettings = spec.companions[rank - 1].settings
    listen = settings.listen
    assert listen is not None
    return Launch(
        name=settings.name,
        env=spec.env,
        address=(listen.host, listen.port),
        tokens=Tokens.of_rank(rank),
        tls=settings.cluster.tls,
    )
