"""The protocols of published numbers, and small ones of our own, as data.

Sources of the published ones: sglang-omni's cookbook for Ming (GSM8K, MMMU, SeedTTS), the text
sweep of vllm-omni's and mstar's comparison (50 requests up to 4 clients, 80 beyond). Where a part
of a protocol is not published, `unknown` says which.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.evaluation.tasks.modalities import INPUTS, OUTPUTS


@dataclass(frozen=True)
class Preset:
    """One run: the task in its variant, the number of samples (None: all), and its loads.

    Each load is run `repeats` times, after `warm_up` requests that do not count.
    """

    name: str
    task: str
    loads: tuple[str, ...]
    samples: int | None
    repeats: int = 3
    warm_up: int = 16
    streaming: bool = True
    unknown: str = ""


def _clients(*counts: int) -> tuple[str, ...]:
    return tuple(f"closed/{count}" for count in counts)


def _seed_tts(language: str, streaming: bool) -> Preset:
    how = "streamed" if streaming else "whole"
    return Preset(
        f"seed-tts-{language}-{how}",
        f"seed-tts-{language}/chat",
        _clients(4),
        None,
        repeats=1,
        streaming=streaming,
    )


_PUBLISHED = (
    Preset(
        "gsm8k-100",
        "gsm8k/chat-0-shot",
        _clients(1, 4, 16),
        100,
        unknown="the prompt of the published rows",
    ),
    Preset(
        "mmmu-50",
        "mmmu/sglang-omni-cot",
        _clients(1, 2, 4, 8, 16),
        50,
        streaming=False,
        unknown="whether answers of the published rows were streamed",
    ),
    Preset("text-sweep-50", "sweep/text", _clients(1, 2, 4), 50),
    Preset("text-sweep-80", "sweep/text", _clients(8, 16, 32), 80),
    *(_seed_tts(language, how) for language in ("en", "zh") for how in (True, False)),
)
_SMOKE = tuple(
    Preset(
        f"smoke-{brings}-to-{gives}",
        f"modality/{brings}-to-{gives}",
        _clients(2),
        4,
        repeats=1,
        warm_up=1,
    )
    for brings in INPUTS
    for gives in OUTPUTS
)


def _bench(
    task: str, samples: int, loads: tuple[str, ...] = ("closed/2",), repeats: int = 1
) -> Preset:
    name = "bench-" + task.replace("/", "-")
    return Preset(name, task, loads, samples, repeats, warm_up=1)


_BENCH = (
    _bench("sweep/text", 12, ("closed/1", "closed/2", "closed/4", "open/2"), repeats=2),
    _bench("gsm8k/chat-0-shot", 4),
    _bench("gsm8k/lm-eval-flexible", 4),
    _bench("gsm8k/sglang-run-eval", 4),
    _bench("mmlu/lm-eval-generative-0-shot", 6),
    _bench("mmmu/sglang", 6),
    _bench("mmmu/lmms-eval", 6),
    _bench("mmmu/sglang-omni-cot", 4),
    _bench("mmsu/lmms-eval", 6),
    _bench("videomme/lmms-eval", 4),
    _bench("speech-to-speech/contains", 6),
    _bench("seed-tts-en/speech", 12, ("closed/1", "closed/4"), repeats=2),
    _bench("seed-tts-en/speech-cloned", 4),
    _bench("seed-tts-en/chat", 4),
)

PRESETS: dict[str, tuple[Preset, ...]] = {
    **{preset.name: (preset,) for preset in _PUBLISHED},
    "text-sweep": tuple(preset for preset in _PUBLISHED if preset.name.startswith("text-sweep")),
    "smoke": _SMOKE,
    "bench": (*_BENCH, *_SMOKE),
}


def preset_names() -> Sequence[str]:
    """Return the names of all presets."""
    return sorted(PRESETS)
