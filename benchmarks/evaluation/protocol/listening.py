"""The second half of a speech run: transcribe the audio, after the server was measured."""

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
from benchmarks.evaluation.metrics.recognisers import SpeechRecogniser
from benchmarks.evaluation.metrics.similarity import SpeakerSimilarity
from benchmarks.evaluation.protocol.record import Key, SampleRecord
from benchmarks.evaluation.protocol.summary import RunTranscripts
from benchmarks.evaluation.tasks.task import Sample
from measurement.word_errors import WordErrors, count_word_errors


def transcribe_run(
    folder: Path,
    records: Sequence[SampleRecord],
    samples: Sequence[Sample],
    recogniser: SpeechRecogniser,
    language: str,
) -> tuple[RunTranscripts, list[dict[str, Any]]]:
    """Return the word errors of every record, and rows with the transcripts.

    The reference is the sample's text, or else the server's own transcript. In failed speech all
    words are wrong. Transcripts are stored in `heard-RECOGNISER.jsonl`, and not made again.
    """
    references = {sample.id: sample.words for sample in samples}
    texts = _transcribe(folder, records, recogniser)
    word_errors: dict[Key, WordErrors] = {}
    rows = []
    for record in records:
        transcript = texts.get(record.key, "")
        reference = references[record.sample] or record.text
        word_errors[record.key] = count_word_errors(reference, transcript, language)
        rows.append({"key": list(record.key), "heard": transcript, **vars(word_errors[record.key])})
    return RunTranscripts(word_errors), rows


def _transcribe(
    folder: Path, records: Sequence[SampleRecord], recogniser: SpeechRecogniser
) -> dict[Key, str]:
    """Return the transcript of every record with audio, from this sitting or an earlier one."""
    path = folder / f"heard-{''.join(c if c.isalnum() else '-' for c in recogniser.name)}.jsonl"
    texts = _read(path)
    pending = [record for record in records if record.audio and record.key not in texts]
    description = f"listening ({recogniser.name})"
    with (
        path.open("a", encoding="utf-8") as file,
        tqdm(pending, desc=description, unit="clip") as bar,
    ):
        for start in range(0, len(pending), recogniser.batch):
            batch = pending[start : start + recogniser.batch]
            transcripts = recogniser.transcribe(
                [_samples(folder / str(record.audio)) for record in batch]
            )
            for record, text in zip(batch, transcripts, strict=True):
                file.write(json.dumps([*record.key, text], ensure_ascii=False) + "\n")
                texts[record.key] = text
            file.flush()
            bar.update(len(batch))
    return texts


def compare_voices(
    folder: Path,
    records: Sequence[SampleRecord],
    samples: Sequence[Sample],
    voices: SpeakerSimilarity,
) -> dict[str, Any]:
    """Return how similar each voice is to its reference recording.

    The result has the cosines, and their mean per load. Failed speech is counted, and not part of
    a mean.
    """
    requests = {sample.id: sample.request for sample in samples}
    rows, loads = [], defaultdict(list)
    for record in tqdm(records, desc=f"comparing ({voices.name})", unit="clip"):
        request = requests[record.sample]
        assert isinstance(request, SpeechRequest)
        assert request.reference is not None
        cosine = None
        if record.audio:
            reference = _samples(io.BytesIO(request.reference))
            cosine = voices.similarity(_samples(folder / record.audio), reference)
            loads[record.load].append(cosine)
        rows.append({"key": list(record.key), "cosine": cosine})
    failed = sum(row["cosine"] is None for row in rows)
    means = {load: fmean(cosines) for load, cosines in loads.items()}
    return {"by": voices.name, "mean": means, "failed": failed, "records": rows}


def clones_voices(samples: Sequence[Sample]) -> bool:
    """Return whether every sample has a reference recording."""
    return all(
        isinstance(sample.request, SpeechRequest) and sample.request.reference is not None
        for sample in samples
    )


def _read(path: Path) -> dict[Key, str]:
    if not path.is_file():
        return {}
    complete = path.read_text(encoding="utf-8").rpartition("\n")[0]
    lines = [json.loads(line) for line in complete.splitlines()]
    return {(load, repeat, sample): transcript for load, repeat, sample, transcript in lines}


def _samples(path: Path | io.BytesIO) -> tuple[np.ndarray, int]:
    samples, rate = soundfile.read(path, dtype="float32")
    return samples, rate
