"""The files of SGLang's metrics have their room on the disk before it is written to."""

from pathlib import Path

from sglang_omni.thinker.metric_files import MetricFiles


def test_room_is_taken_for_new_files_and_for_those_that_grew(tmp_path: Path) -> None:
    files, file = MetricFiles(tmp_path), tmp_path / "counter_1.db"
    for size in (1 << 16, 1 << 17):
        with file.open("ab") as sparse:
            sparse.truncate(size)
        assert file.stat().st_blocks * 512 < size
        files.reserve()
        assert file.stat().st_blocks * 512 >= size
    assert file.read_bytes() == bytes(1 << 17)


def test_without_a_folder_or_its_files_there_is_nothing_to_do(tmp_path: Path) -> None:
    MetricFiles(None).reserve()
    MetricFiles(tmp_path / "gone").reserve()
