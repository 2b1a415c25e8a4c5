"""How long drawn images can be fetched."""

from sglang_omni.entrypoints.http.image_store import ImageStore


class Seconds:
    """A clock that a test sets."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_file_expires() -> None:
    clock = Seconds()
    store = ImageStore(1000, 60.0, clock)
    name = store.add(b"image", "png")
    assert name.endswith(".png")
    clock.now = 59.0
    stored = store.get(name)
    assert stored is not None
    assert (stored.data, stored.file_type) == (b"image", "png")
    clock.now = 60.0
    assert store.get(name) is None


def test_the_oldest_files_make_room_but_the_latest_is_kept() -> None:
    store = ImageStore(10, 60.0)
    first, second, third = (store.add(bytes(4), "webp") for _ in range(3))
    assert store.get(first) is None
    assert store.get(second) is not None
    large = store.add(bytes(100), "webp")
    assert store.get(large) is not None
    assert store.get(third) is None


def test_names_cannot_be_guessed() -> None:
    store = ImageStore(1000, 60.0)
    names = {store.add(b"", "png") for _ in range(100)}
    assert len(names) == 100
    assert all(len(name) >= 22 + len(".png") for name in names)
