"""Holds the conversation of one session: its items in order, within a byte limit."""

from collections.abc import Iterator

from sglang_omni.entrypoints.realtime.items import (
    AudioContent,
    ImageContent,
    Item,
    MessageItem,
    SpeechContent,
    drop_media,
    estimate_bytes,
)
from sglang_omni.protocol.errors import InvalidRequest

# `previous_item_id` that inserts an item at the beginning.
ROOT = "root"


class ItemError(InvalidRequest):
    """An event refers to an item that does not exist or does not fit; `code` says which."""

    def __init__(self, message: str, code: str, param: str) -> None:
        super().__init__(message, param=param)
        self.code = code


# Several times the number of items in the longest session.
MAX_ITEMS = 4096
# Content parts of all messages together: each response reads all of them.
MAX_PARTS = 16_384


class Conversation:
    """Holds the items of a session in order.

    Beyond `max_bytes` the oldest audio and images are dropped; their items and transcripts stay.
    Beyond `MAX_ITEMS` the oldest items are dropped.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._items: list[Item] = []
        self._size_bytes = self._bytes_without_media = 0
        self._num_parts = 0

    def __iter__(self) -> Iterator[Item]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    @property
    def size_bytes(self) -> int:
        """Return the bytes that all items hold."""
        return self._size_bytes

    def has_room(self, item: Item) -> bool:
        """Return whether `item` fits once all older audio and images are dropped."""
        if len(self) >= MAX_ITEMS or self._num_parts + _count_parts(item) > MAX_PARTS:
            return False
        return self._bytes_without_media + estimate_bytes(item) <= self._max_bytes

    def find(self, item_id: str, action: str) -> Item:
        """Return the item with this id.

        Raises:
            ItemError: There is none; its code is `item_<action>_invalid_item_id`.
        """
        for item in self._items:
            if item.id == item_id:
                return item
        code = f"item_{action}_invalid_item_id"
        raise ItemError(f"item_id: no item {item_id!r} in the conversation", code, "item_id")

    def has(self, item_id: str) -> bool:
        """Return whether there is an item with this id."""
        return any(item.id == item_id for item in self._items)

    def find_speech(self, item_id: str) -> SpeechContent | None:
        """Return the speech of a spoken answer, None if the item is missing or holds no speech."""
        for item in self._items:
            if item.id == item_id and isinstance(item, MessageItem) and item.content:
                part = item.content[0]
                return part if isinstance(part, SpeechContent) else None
        return None

    def previous_id(self, item_id: str) -> str | None:
        """Return the id of the item before this one."""
        previous_id: str | None = None
        for item in self._items:
            if item.id == item_id:
                return previous_id
            previous_id = item.id
        return None

    @property
    def last_id(self) -> str | None:
        """Return the id of the last item."""
        return self._items[-1].id if self._items else None

    def add(self, item: Item, after_id: str | None = None) -> str | None:
        """Insert an item at the end, or after the item `after_id` (`root`: at the beginning).

        Returns:
            The id of the item before it, None for the first one.

        Raises:
            ItemError: The item's id exists already, or `after_id` does not exist.
        """
        if self.has(item.id):
            message = f"item.id: item {item.id!r} exists already"
            raise ItemError(message, "item_create_duplicate_item_id", "item.id")
        index = len(self._items) if after_id is None else self._index_after(after_id)
        previous_id = self._items[index - 1].id if index else None
        self._items.insert(index, item)
        self._update_sizes(item, 1)
        while len(self) > MAX_ITEMS:
            self._update_sizes(self._items.pop(0), -1)
        self._evict_media()
        return previous_id

    def replace(self, item: Item) -> None:
        """Replace the item of the same id. Do nothing if it was deleted meanwhile."""
        for index, current in enumerate(self._items):
            if current.id == item.id:
                self._replace_at(index, item)
                self._evict_media()

    def delete(self, item_id: str) -> None:
        """Delete an item. Raises `ItemError` if there is none with this id."""
        item = self.find(item_id, "delete")
        self._items.remove(item)
        self._update_sizes(item, -1)

    def _index_after(self, item_id: str) -> int:
        if item_id == ROOT:
            return 0
        for index, item in enumerate(self._items, 1):
            if item.id == item_id:
                return index
        raise ItemError(
            f"previous_item_id: no item {item_id!r} in the conversation",
            "item_create_invalid_previous_item_id",
            "previous_item_id",
        )

    def _replace_at(self, index: int, item: Item) -> None:
        self._update_sizes(self._items[index], -1)
        self._update_sizes(item, 1)
        self._items[index] = item

    def _update_sizes(self, item: Item, sign: int) -> None:
        self._size_bytes += sign * estimate_bytes(item)
        self._bytes_without_media += sign * estimate_bytes(drop_media(item))
        self._num_parts += sign * _count_parts(item)

    def _evict_media(self) -> None:
        """Drop the oldest media beyond the limit, but not those of the newest item."""
        for index, item in enumerate(self._items[:-1]):
            if self._size_bytes <= self._max_bytes:
                return
            if _has_media(item):
                self._replace_at(index, drop_media(item))


def _count_parts(item: Item) -> int:
    return len(item.content) if isinstance(item, MessageItem) else 1


def _has_media(item: Item) -> bool:
    if not isinstance(item, MessageItem):
        return False
    return any(
        (isinstance(part, AudioContent) and part.wav is not None)
        or (isinstance(part, ImageContent) and part.url is not None)
        for part in item.content
    )
