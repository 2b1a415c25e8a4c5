"""The files of SGLang's metrics have their room on the disk before it is written to."""

from pathlib import Path

from prometheus_client.mmap_dict import MmapedDict

from sglang_omni.engines.thinker.metric_files import PREALLOCATED_KINDS, MetricFiles


def test_what_is_written_next_has_its_room_however_often_a_file_grows(tmp_path: Path) -> None:
    files, file = MetricFiles(tmp_path), tmp_path / "counter_1.db"
    values, keys = MmapedDict(str(file)), iter(range(100_000))
    sizes = []
    for _ in range(3):
        files.reserve()
        reserved = file.stat().st_size
        while file.stat().st_size == reserved:
            values.write_value(f"key {next(keys):06}", 1.0, 0.0)
        # It has grown: all of it was taken before, what was just written among it.
        assert file.stat().st_blocks * 512 >= file.stat().st_size
        sizes.append(file.stat().st_size)
    values.close()
    assert sizes == [1 << 17, 1 << 18, 1 << 19]
    assert len(list(MmapedDict.read_all_values_from_file(str(file)))) == next(keys)


def test_a_file_of_which_nothing_is_known_gets_room(tmp_path: Path) -> None:
    files, file = MetricFiles(tmp_path), tmp_path / "gauge_1.db"
    with file.open("wb") as sparse:
        sparse.truncate(1 << 16)
    assert file.stat().st_blocks * 512 < 1 << 16
    files.reserve()
    assert file.stat().st_blocks * 512 >= 1 << 16


def test_a_process_that_begins_later_finds_room(tmp_path: Path) -> None:
    MetricFiles(tmp_path, [7]).reserve()
    for kind in PREALLOCATED_KINDS:
        file = tmp_path / f"{kind}_7.db"
        assert list(MmapedDict.read_all_values_from_file(str(file))) == []
        assert file.stat().st_blocks * 512 >= file.stat().st_size > 0
        values = MmapedDict(str(file))
        values.write_value("key", 1.0, 0.0)
        assert values.read_value("key") == (1.0, 0.0)
        values.close()


def test_files_of_an_earlier_start_stay_as_they_are_however_often_there_is_another(
    tmp_path: Path,
) -> None:
    MetricFiles(tmp_path, [7]).reserve()
    left = {file: file.stat().st_size for file in tmp_path.iterdir()}
    for pid in range(8, 12):
        MetricFiles(tmp_path, [pid]).reserve()
    assert {file: file.stat().st_size for file in left} == left
    # A life that finds the process id of an earlier one again uses its files.
    MetricFiles(tmp_path, [7]).reserve()
    assert min(file.stat().st_size for file in left) > 0


def test_without_a_folder_or_its_files_there_is_nothing_to_do(tmp_path: Path) -> None:
    MetricFiles(None).reserve()
    MetricFiles(tmp_path / "gone").reserve()
