"""The server of `sgl-omni serve` with synthetic engines.

    python -m benchmarks.serving.api_process --port 8802 --step-ms 8 --talker-step-ms 10

The engines are real processes behind the real transport, without a model, so that its CPU time is
that of the API process alone.
"""

import argparse
import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from benchmarks.synthetic.talker import SyntheticSettings
from benchmarks.synthetic.thinker import ThinkerPace
from sglang_omni.config.admission_options import AdmissionOptions
from sglang_omni.config.tree import Config
from sglang_omni.engines.runtime.process import ProcessSpec
from sglang_omni.entrypoints.cli.serve import serve
from sglang_omni.models.ming.prompt.tokenizer import ThinkerTokenizer
from sglang_omni.serving.server import Server

ROOT = Path(__file__).parents[2]
CHECKPOINT = ROOT / "tests" / "goldens" / "tiny_checkpoint"
"""Only its tokenizer is used."""
ANSWER = (
    "The mill stands by the river, and its wheel has turned there for as long as anybody in the "
    "village can remember. In spring, when the snow on the hills has melted, the water is so loud "
    "that the miller and his guests talk by signs. "
)
"""The text of every answer, which repeats."""
MAX_REQUESTS = 2048


def answer_ids() -> tuple[int, ...]:
    """Return the tokens of `ANSWER`."""
    return tuple(ThinkerTokenizer(CHECKPOINT).encode_text(ANSWER))


def build_specs(
    thinker: ThinkerPace,
    talker: SyntheticSettings,
    config: Config,
    checkpoint: Path,
    env: Mapping[str, str],
) -> dict[str, tuple[ProcessSpec, ...]]:
    """Build the specs of engine processes that run without a model."""
    paths = {"PYTHONPATH": f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    factories = {"thinker": thinker, "talker": talker}
    return {
        name: (
            ProcessSpec(
                name,
                f"benchmarks.synthetic.{name}:open_worker",
                settings,
                {**env, **paths},
                max_in_flight=MAX_REQUESTS,
            ),
        )
        for name, settings in factories.items()
    }


def parse_arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=8802)
    parser.add_argument("--step-ms", type=float, default=8.0, help="of the thinker")
    parser.add_argument("--talker-step-ms", type=float, default=10.0)
    parser.add_argument("--patches", type=int, default=20, help="of an answer in speech")
    return parser.parse_args()


def main() -> int:
    """Serve until interrupted."""
    arguments = parse_arguments()
    thinker = ThinkerPace(MAX_REQUESTS, arguments.step_ms, answer_ids())
    talker = SyntheticSettings(
        MAX_REQUESTS, MAX_REQUESTS, arguments.talker_step_ms, 0.0, arguments.patches
    )
    config = Config(
        model_path=CHECKPOINT,
        port=arguments.port,
        device="cpu",
        text_only=True,
        admission=AdmissionOptions(queue_length=MAX_REQUESTS),
    )
    specs = partial(build_specs, thinker, talker)
    return serve(config, partial(Server, build_specs=specs))


if __name__ == "__main__":
    raise SystemExit(main())
