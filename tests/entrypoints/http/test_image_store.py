"""How long drawn images can be fetched."""

from sglang_omni.entrypoints.http.image_store import MemoryImageStore


class Seconds:
    """A clock that a test sets."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


async def test_a_file_expires() -> None:
    clock = Seconds()
    store = MemoryImageStore(1000, 60.0, clock)
    name = await store.add(b"image", "png")
    assert name.endswith(".png")
    clock.now = 59.0
    stored = await store.get(name)
    assert stored is not None
    assert (stored.data, stored.file_type) == (b"image", "png")
    clock.now = 60.0
    assert await store.get(name) is None


async def test_the_oldest_files_make_room_but_the_latest_is_kept() -> None:
    store = MemoryImageStore(10, 60.0)
    first, second, third = [await store.add(bytes(4), "webp") for _ in range(3)]
    assert await store.get(first) is None
    assert await store.get(second) is not None
    large = await store.add(bytes(100), "webp")
    assert await store.get(large) is not None
    assert await store.get(third) is None


async def test_names_cannot_be_guessed() -> None:
    store = MemoryImageStore(1000, 60.0)
    names = {await store.add(b"", "png") for _ in range(100)}
    assert len(names) == 100
    assert all(len(name) >= 22 + len(".png") for name in names)
