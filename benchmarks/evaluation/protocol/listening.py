"""The second half of a spoken run: hear what was said, when the server is no longer measured."""

import io
import json
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import soundfile
from tqdm import tqdm

from benchmarks.client.target import SpeechRequest
from benchmarks.evaluation.metrics.recognisers import Listener
from benchmarks.evaluation.metrics.similarity import Voices
from benchmarks.evaluation.protocol.record import Key, SampleRecord
from benchmarks.evaluation.protocol.summary import Heard
from benchmarks.evaluation.tasks.task import Sample
from measurement.word_errors import WordErrors, count_word_errors


def listen(
    folder: Path,
    records: Sequence[SampleRecord],
    samples: Sequence[Sample],
    listener: Listener,
    language: str,
) -> tuple[Heard, list[dict[str, Any]]]:
    """Word errors of every record, and what was heard in it.

    What should be said is the sample's text, or else what the server says that it said. Speech that
    failed has all words wrong. What was heard is kept in `heard-LISTENER.jsonl`, not heard again.
    """
    due = {sample.id: sample.words for sample in samples}
    texts = _texts(folder, records, listener)
    counted: dict[Key, WordErrors] = {}
    rows = []
    for one in records:
        heard = texts.get(one.key, "")
        said = due[one.sample] or one.text
        counted[one.key] = count_word_errors(said, heard, language)
        rows.append({"key": list(one.key), "heard": heard, **vars(counted[one.key])})
    return Heard(counted), rows


def _texts(folder: Path, records: Sequence[SampleRecord], listener: Listener) -> dict[Key, str]:
    """What was heard in every record with sound, now or in a sitting before."""
    path = folder / f"heard-{''.join(c if c.isalnum() else '-' for c in listener.name)}.jsonl"
    texts = _read(path)
    new = [one for one in records if one.audio and one.key not in texts]
    about = f"listening ({listener.name})"
    with path.open("a", encoding="utf-8") as file, tqdm(new, desc=about, unit="clip") as bar:
        for begin in range(0, len(new), listener.batch):
            some = new[begin : begin + listener.batch]
            heard = listener.hear([_samples(folder / str(one.audio)) for one in some])
            for one, text in zip(some, heard, strict=True):
                file.write(json.dumps([*one.key, text], ensure_ascii=False) + "\n")
                texts[one.key] = text
            file.flush()
            bar.update(len(some))
    return texts


def compare(
    folder: Path, records: Sequence[SampleRecord], samples: Sequence[Sample], voices: Voices
) -> dict[str, Any]:
    """How much each voice resembles the recording that it was asked to speak like: the cosines,
    and their mean for each load. Speech that failed is counted, and in no mean."""
    asked = {sample.id: sample.request for sample in samples}
    rows, loads = [], defaultdict(list)
    for one in tqdm(records, desc=f"comparing ({voices.name})", unit="clip"):
        request = asked[one.sample]
        assert isinstance(request, SpeechRequest) and request.reference is not None
        cosine = None
        if one.audio:
            like = _samples(io.BytesIO(request.reference))
            cosine = voices.similarity(_samples(folder / one.audio), like)
            loads[one.load].append(cosine)
        rows.append({"key": list(one.key), "cosine": cosine})
    failed = sum(row["cosine"] is None for row in rows)
    means = {load: fmean(cosines) for load, cosines in loads.items()}
    return {"by": voices.name, "mean": means, "failed": failed, "records": rows}


def clones(samples: Sequence[Sample]) -> bool:
    """Whether every sample asks for the voice of a recording."""
    return all(
        isinstance(one.request, SpeechRequest) and one.request.reference is not None
        for one in samples
    )


def _read(path: Path) -> dict[Key, str]:
    if not path.is_file():
        return {}
    whole = path.read_text(encoding="utf-8").rpartition("\n")[0]
    lines = [json.loads(line) for line in whole.splitlines()]
    return {(load, repeat, sample): heard for load, repeat, sample, heard in lines}


def _samples(path: Path | io.BytesIO) -> tuple[np.ndarray, int]:
    samples, rate = soundfile.read(path, dtype="float32")
    return samples, rate
