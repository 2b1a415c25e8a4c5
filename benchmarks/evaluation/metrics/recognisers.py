"""Who listens: recognisers by name. Word errors by different ones are not comparable.

`whisper` and `paraformer` are those of seed-tts-eval (Whisper large v3 for English, Paraformer for
Chinese); their weights must lie in a folder. `pocketsphinx` needs none, hears English only, and
errs far more: it tells a voice from a noise, no more.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np
import soxr

from measurement.pocketsphinx_recogniser import RECOGNISER_RATE, Recogniser

# Float samples [n] and their rate in Hz.
Clip = tuple[np.ndarray, int]


class NoRecogniser(RuntimeError):
    """A recogniser's package or weights are not there."""


class Listener(Protocol):
    """Turns speech into text, up to `batch` clips at once."""

    languages: ClassVar[tuple[str, ...]]
    batch: ClassVar[int]
    name: str

    def __init__(self, weights: Path | None, language: str) -> None: ...

    def hear(self, clips: Sequence[Clip]) -> list[str]:
        """The text of each clip."""


class Pocketsphinx:
    """pocketsphinx with its own English model."""

    languages: ClassVar[tuple[str, ...]] = ("en",)
    batch: ClassVar[int] = 1

    def __init__(self, weights: Path | None, language: str) -> None:
        """Raises `NoRecogniser` without the package, and for a language it does not know."""
        self.name = "pocketsphinx"
        if language not in self.languages:
            raise NoRecogniser(f"pocketsphinx's own model hears no {language}")
        try:
            self._inner = Recogniser()
        except ImportError:
            raise NoRecogniser("`pip install pocketsphinx` for the offline recogniser") from None

    def hear(self, clips: Sequence[Clip]) -> list[str]:
        """The text of each clip."""
        return [" ".join(self._inner.words(*clip)) for clip in clips]


class Whisper:
    """Whisper of a local folder, through transformers; greedy, in the language that is due. Every
    clip becomes 30 s of features, so a batch hears what each clip alone would be heard as."""

    languages: ClassVar[tuple[str, ...]] = ("en", "zh")
    batch: ClassVar[int] = 16

    def __init__(self, weights: Path | None, language: str) -> None:
        """Raises `NoRecogniser` where the folder holds no such model."""
        # Here, for torch takes seconds to import.
        import torch
        from transformers import WhisperForConditionalGeneration, WhisperProcessor

        folder = _folder(weights, "openai/whisper-large-v3")
        try:
            self._processor: Any = WhisperProcessor.from_pretrained(folder, local_files_only=True)
            model: Any = WhisperForConditionalGeneration.from_pretrained(
                folder, local_files_only=True
            )
        except (OSError, ValueError) as error:
            raise NoRecogniser(f"{folder} holds no Whisper for transformers: {error}") from error
        self.name = f"whisper ({folder.name})"
        self._device = "cuda" if torch.cuda.is_available() else "cpu"
        self._model, self._language = model.to(self._device).eval(), language

    def hear(self, clips: Sequence[Clip]) -> list[str]:
        """The text of the first 30 s of each clip, as the reference script takes it."""
        features = self._processor(
            [_at_16khz(clip) for clip in clips],
            sampling_rate=RECOGNISER_RATE,
            return_tensors="pt",
        ).input_features
        tokens = self._model.generate(
            features.to(self._device),
            language=self._language,
            task="transcribe",
            do_sample=False,
            num_beams=1,
        )
        texts = self._processor.batch_decode(tokens, skip_special_tokens=True)
        return [text.strip() for text in texts]


class Paraformer:
    """Paraformer of a local folder, through funasr; traditional characters become simplified ones,
    as in the reference script. One clip after the other, for funasr answers a batch in which
    somebody is silent with fewer texts than clips."""

    languages: ClassVar[tuple[str, ...]] = ("zh",)
    batch: ClassVar[int] = 1

    def __init__(self, weights: Path | None, language: str) -> None:
        """Raises `NoRecogniser` without package or weights, and for another language."""
        if language not in self.languages:
            raise NoRecogniser(f"Paraformer hears no {language}")
        folder = _folder(weights, "paraformer-zh")
        if missing := [name for name in PARAFORMER_FILES if not (folder / name).is_file()]:
            raise NoRecogniser(f"{folder} holds no Paraformer for funasr: no {', '.join(missing)}")
        try:
            from funasr import AutoModel
            from zhconv import convert
        except ImportError:
            raise NoRecogniser("`pip install funasr zhconv` for Paraformer") from None
        self._simplify: Callable[[str, str], str] = convert
        # By itself it asks PyPI for its newest version, and leaves out tensors that do not fit.
        options = {"disable_update": True, "disable_pbar": True, "ignore_init_mismatch": False}
        try:
            self._model = AutoModel(model=str(folder), **options)
        except RuntimeError as error:
            raise NoRecogniser(f"{folder}: {error}") from error
        self.name = f"paraformer ({folder.name})"

    def hear(self, clips: Sequence[Clip]) -> list[str]:
        """The text of each clip; empty where nothing was said."""
        return [self._one(clip) for clip in clips]

    def _one(self, clip: Clip) -> str:
        (found,) = self._model.generate(input=_at_16khz(clip), batch_size_s=300)
        return self._simplify(found["text"], "zh-cn")


# Without the last one funasr would hear unnormalised features, and say nothing of it.
PARAFORMER_FILES = ("config.yaml", "model.pt", "tokens.json", "am.mvn")

LISTENERS: dict[str, type[Listener]] = {
    "pocketsphinx": Pocketsphinx,
    "whisper": Whisper,
    "paraformer": Paraformer,
}


def _folder(weights: Path | None, name: str) -> Path:
    if weights is None:
        raise NoRecogniser(f"download {name} from its hub, and name its folder (--weights)")
    if not weights.is_dir():
        raise NoRecogniser(f"{weights} is no folder: download {name} from its hub, and name it")
    return weights


def _at_16khz(clip: Clip) -> np.ndarray:
    samples, rate = clip
    return np.asarray(soxr.resample(samples.astype(np.float32), rate, RECOGNISER_RATE))
