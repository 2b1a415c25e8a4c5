"""Speech recognisers by name. Word errors of different recognisers are not comparable.

`whisper` and `paraformer` are those of seed-tts-eval (Whisper large v3 for English, Paraformer for
Chinese); their weights must be in a folder. `pocketsphinx` needs none, knows only English, and has
far more errors: it only tells intelligible speech from noise.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np
import soxr

from measurement.pocketsphinx_recogniser import RECOGNISER_RATE, Recogniser

# Float samples [n], and their rate in Hz.
Clip = tuple[np.ndarray, int]


class RecogniserUnavailable(RuntimeError):
    """The package or the weights of a recogniser are missing."""


class SpeechRecogniser(Protocol):
    """Transcribe speech, up to `batch` clips at once."""

    languages: ClassVar[tuple[str, ...]]
    batch: ClassVar[int]
    name: str

    def __init__(self, weights: Path | None, language: str) -> None: ...

    def transcribe(self, clips: Sequence[Clip]) -> list[str]:
        """Return the transcript of each clip."""


class Pocketsphinx:
    """pocketsphinx with its own English model."""

    languages: ClassVar[tuple[str, ...]] = ("en",)
    batch: ClassVar[int] = 1

    def __init__(self, weights: Path | None, language: str) -> None:
        """Load the model.

        Raises `RecogniserUnavailable` without the package, or for a language that it does not know.
        """
        self.name = "pocketsphinx"
        if language not in self.languages:
            raise RecogniserUnavailable(f"pocketsphinx's own model hears no {language}")
        try:
            self._inner = Recogniser()
        except ImportError:
            raise RecogniserUnavailable(
                "`pip install pocketsphinx` for the offline recogniser"
            ) from None

    def transcribe(self, clips: Sequence[Clip]) -> list[str]:
        """Return the transcript of each clip."""
        return [" ".join(self._inner.words(*clip)) for clip in clips]


class Whisper:
    """Whisper from a local folder, through transformers: greedy, in the given language.

    Every clip becomes 30 s of features, so a batch has the same transcripts as single clips.
    """

    languages: ClassVar[tuple[str, ...]] = ("en", "zh")
    batch: ClassVar[int] = 16

    def __init__(self, weights: Path | None, language: str) -> None:
        """Raise `RecogniserUnavailable` if the folder has no such model."""
        # Imported here: torch takes seconds to import.
        import torch
        from transformers import WhisperForConditionalGeneration, WhisperProcessor

        folder = _folder(weights, "openai/whisper-large-v3")
        try:
            self._processor: Any = WhisperProcessor.from_pretrained(folder, local_files_only=True)
            model: Any = WhisperForConditionalGeneration.from_pretrained(
                folder, local_files_only=True
            )
        except (OSError, ValueError) as error:
            raise RecogniserUnavailable(
                f"{folder} holds no Whisper for transformers: {error}"
            ) from error
        self.name = f"whisper ({folder.name})"
        self._device = "cuda" if torch.cuda.is_available() else "cpu"
        self._model, self._language = model.to(self._device).eval(), language

    def transcribe(self, clips: Sequence[Clip]) -> list[str]:
        """Return the transcript of the first 30 s of each clip, as the reference script does."""
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
    """Paraformer from a local folder, through funasr.

    Traditional characters are converted to simplified ones, as in the reference script. Clips are
    transcribed one at a time, because funasr returns fewer texts than clips for a batch with
    silence.
    """

    languages: ClassVar[tuple[str, ...]] = ("zh",)
    batch: ClassVar[int] = 1

    def __init__(self, weights: Path | None, language: str) -> None:
        """Raise `RecogniserUnavailable` without package or weights, or for another language."""
        if language not in self.languages:
            raise RecogniserUnavailable(f"Paraformer hears no {language}")
        folder = _folder(weights, "paraformer-zh")
        if missing := [name for name in PARAFORMER_FILES if not (folder / name).is_file()]:
            raise RecogniserUnavailable(
                f"{folder} holds no Paraformer for funasr: no {', '.join(missing)}"
            )
        try:
            from funasr import AutoModel
            from zhconv import convert
        except ImportError:
            raise RecogniserUnavailable("`pip install funasr zhconv` for Paraformer") from None
        self._simplify: Callable[[str, str], str] = convert
        # By default it asks PyPI for its newest version, and skips tensors that do not fit.
        options = {"disable_update": True, "disable_pbar": True, "ignore_init_mismatch": False}
        try:
            self._model = AutoModel(model=str(folder), **options)
        except RuntimeError as error:
            raise RecogniserUnavailable(f"{folder}: {error}") from error
        self.name = f"paraformer ({folder.name})"

    def transcribe(self, clips: Sequence[Clip]) -> list[str]:
        """Return the transcript of each clip; empty for silence."""
        return [self._one(clip) for clip in clips]

    def _one(self, clip: Clip) -> str:
        (found,) = self._model.generate(input=_at_16khz(clip), batch_size_s=300)
        return self._simplify(found["text"], "zh-cn")


# Without the last file funasr would silently use unnormalised features.
PARAFORMER_FILES = ("config.yaml", "model.pt", "tokens.json", "am.mvn")

RECOGNISERS: dict[str, type[SpeechRecogniser]] = {
    "pocketsphinx": Pocketsphinx,
    "whisper": Whisper,
    "paraformer": Paraformer,
}


def _folder(weights: Path | None, name: str) -> Path:
    if weights is None:
        raise RecogniserUnavailable(
            f"download {name} from its hub, and name its folder (--weights)"
        )
    if not weights.is_dir():
        raise RecogniserUnavailable(
            f"{weights} is no folder: download {name} from its hub, and name it"
        )
    return weights


def _at_16khz(clip: Clip) -> np.ndarray:
    samples, rate = clip
    return np.asarray(soxr.resample(samples.astype(np.float32), rate, RECOGNISER_RATE))
