"""Data sets come in one form from wherever they are, and say what is missing."""

import io
import json
import sys
from pathlib import Path
from typing import Any

import av
import pyarrow
import pyarrow.parquet
import pytest
from PIL import Image

from benchmarks.client.target import ChatRequest, MediaPart, SpeechRequest, TextPart
from benchmarks.evaluation.datasets.source import DatasetError, load_rows
from benchmarks.evaluation.tasks import TASKS
from benchmarks.evaluation.tasks.gsm8k import TEST
from benchmarks.evaluation.tasks.mmmu import VALIDATION
from benchmarks.evaluation.tasks.questions import MMSU, VIDEO_MME
from benchmarks.evaluation.tasks.speaking import SEED_TTS


def as_jsonl(folder: Path, rows: list[dict[str, Any]], media: tuple[str, ...]) -> None:
    """Store rows with their media as files beside them."""
    lines = []
    for row in rows:
        files = {name: row[name] for name in media if row.get(name)}
        for medium in files.values():
            (folder / medium["path"]).write_bytes(medium["bytes"])
        lines.append(json.dumps(row | {name: medium["path"] for name, medium in files.items()}))
    (folder / "test.jsonl").write_text("\n".join(lines), encoding="utf-8")


@pytest.mark.parametrize("name", TASKS)
def test_every_task_makes_samples_of_its_bundled_rows(name: str) -> None:
    task = TASKS[name]
    samples = task.samples("fixture")
    assert 1 < len(samples) == len({sample.id for sample in samples})
    assert samples == task.samples("fixture")
    assert task.samples("fixture", 2) == samples[:2]
    if task.judge:
        verdict = task.judge(samples[0], "")
        assert not verdict.right or verdict.how == "guessed"
    if task.name.startswith("seed-tts"):
        assert all(sample.words for sample in samples)


def test_drawn_media_are_real_files() -> None:
    def first(name: str) -> bytes:
        ask = TASKS[name].samples("fixture")[0].request
        assert isinstance(ask, ChatRequest)
        return next(part.data for part in ask.parts if isinstance(part, MediaPart))

    assert Image.open(io.BytesIO(first("mmmu/sglang"))).size == (96, 96)
    with av.open(io.BytesIO(first("videomme/lmms-eval")), "r") as video:
        assert sum(1 for _ in video.decode(video=0)) == 8
    with av.open(io.BytesIO(first("mmsu/lmms-eval"))) as clip:
        assert clip.streams.audio[0].rate == 16_000


def test_rows_from_parquet_and_json_lines_are_those_of_the_hub(tmp_path: Path) -> None:
    rows = MMSU.bundled()
    (tmp_path / "lines").mkdir()
    as_jsonl(tmp_path / "lines", rows, MMSU.media)
    assert load_rows(MMSU, str(tmp_path / "lines")) == rows
    data = tmp_path / "copy" / "data"
    data.mkdir(parents=True)
    table = pyarrow.Table.from_pylist(rows)
    pyarrow.parquet.write_table(table, data / "test-00000-of-00001.parquet")
    pyarrow.parquet.write_table(table.slice(0, 1), data / "train-0.parquet")
    assert load_rows(MMSU, str(tmp_path / "copy")) == rows


def test_a_video_is_found_by_its_name(tmp_path: Path) -> None:
    (row,) = VIDEO_MME.bundled()[:1]
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / f"{row['videoID']}.mp4").write_bytes(b"a film")
    bare = {name: value for name, value in row.items() if name != "video"}
    as_jsonl(tmp_path, [bare], ())
    (loaded,) = load_rows(VIDEO_MME, str(tmp_path))
    assert loaded["video"]["bytes"] == b"a film"


def test_a_list_of_seed_tts_is_read(tmp_path: Path) -> None:
    (tmp_path / "prompt-wavs").mkdir()
    (tmp_path / "prompt-wavs" / "a.wav").write_bytes(b"ah")
    lines = "u1|Ah, ah.|prompt-wavs/a.wav|Good morning.|prompt-wavs/a.wav\n\n"
    (tmp_path / "meta.lst").write_text(lines, encoding="utf-8")
    (row,) = load_rows(SEED_TTS["en"], str(tmp_path))
    assert row["prompt_wav"]["bytes"] == b"ah"
    assert (row["utt"], row["prompt_text"], row["infer_text"]) == ("u1", "Ah, ah.", "Good morning.")


def test_what_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DatasetError, match="not a folder"):
        load_rows(TEST, str(tmp_path / "nowhere"))
    with pytest.raises(DatasetError, match="no parquet or jsonl"):
        load_rows(TEST, str(tmp_path))
    as_jsonl(tmp_path, [{"question": "1 + 1?"}], ())
    with pytest.raises(DatasetError, match=r"lacks the columns \['answer'\]"):
        load_rows(TEST, str(tmp_path))
    as_jsonl(tmp_path, [{"utt": "a", "prompt_wav": "gone.wav"}], ())
    with pytest.raises(DatasetError, match=r"gone\.wav"):
        load_rows(SEED_TTS["zh"], str(tmp_path))
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(DatasetError, match="pip install datasets"):
        load_rows(TEST, "hub")


def test_mmmu_is_sorted_and_only_what_has_pictures() -> None:
    rows = VALIDATION.bundled()
    rows[0] = rows[0] | {"image_1": None}
    samples = TASKS["mmmu/sglang"].build(list(reversed(rows)))
    assert [sample.id for sample in samples] == sorted(row["id"] for row in rows[1:])
    assert samples[0].group == "Art"


def test_pictures_above_the_limit_are_left_out_where_sglang_does() -> None:
    file = io.BytesIO()
    Image.new("1", (2100, 2100)).save(file, "PNG")
    rows = VALIDATION.bundled()
    rows[0] = rows[0] | {"image_1": {"bytes": file.getvalue(), "path": None}}
    assert len(TASKS["mmmu/sglang"].build(rows)) == len(rows) - 1
    assert len(TASKS["mmmu/lmms-eval"].build(rows)) == len(rows)


def text_of(name: str) -> tuple[str, str]:
    """What a task asks first: the kinds of its parts, and its text."""
    ask = TASKS[name].samples("fixture")[0].request
    assert isinstance(ask, ChatRequest)
    kinds = "".join(part.kind[0] if isinstance(part, MediaPart) else "t" for part in ask.parts)
    return kinds, "|".join(part.text for part in ask.parts if isinstance(part, TextPart))


def test_prompts_are_those_of_their_conventions() -> None:
    options = "A. Red\nB. Green\nC. Blue\nD. Orange"
    letter = "Answer with the option's letter from the given choices directly."
    bracketed = "(A) Red\n(B) Green\n(C) Blue\n(D) Orange"
    assert text_of("mmmu/sglang") == (
        "tit",
        f"Which colour is the shape in |?\n{bracketed}\n{letter}",
    )
    asked = f"Which colour is the shape in <image 1>?\n{options}\n\n{letter}"
    assert text_of("mmmu/lmms-eval") == ("it", asked)
    kinds, asked = text_of("mmmu/sglang-omni-cot")
    assert kinds == "it"
    assert asked.startswith(f"Which colour is the shape in ?\n\n{options}\n\nAnswer")
    kinds, asked = text_of("gsm8k/sglang-5-shot")
    assert asked.count("Question: ") == 6
    assert asked.endswith("\nAnswer:")
    assert text_of("mmlu/lm-eval-generative-0-shot")[1].endswith("\nD. 11\nAnswer:")
    kinds, asked = text_of("mmsu/lmms-eval")
    assert kinds == "at"
    assert asked.endswith("Answer with the letter (A, B, C, or D) only.")
    cloned = TASKS["seed-tts-en/speech-cloned"].samples("fixture")[0].request
    assert isinstance(cloned, SpeechRequest)
    assert cloned.reference
    assert cloned.said == "Ah, ah."
