"""The conversation of one session: its items in order, within a byte budget."""

from collections.abc import Iterator

from sglang_omni.entrypoints.realtime.items import (
    AudioContent,
    ImageContent,
    Item,
    MessageItem,
    SpeechContent,
    weight,
    without_media,
)
from sglang_omni.protocol.errors import InvalidRequest

# `previous_item_id` of an item that shall be the first.
ROOT = "root"


class ItemError(InvalidRequest):
    """An event names an item that cannot be meant; `code` says in which way."""

    def __init__(self, message: str, code: str, param: str) -> None:
        super().__init__(message, param=param)
        self.code = code


# Several times what is said in the longest session.
MAX_ITEMS = 4096
# Of all messages: each is looked at for every answer.
MAX_PARTS = 16_384


class Conversation:
    """Keeps the items. Beyond `budget` bytes the oldest sound and pictures are let go, not their
    items: a transcript goes on to stand for what was said. Beyond `MAX_ITEMS` the oldest items go.
    """

    def __init__(self, budget: int) -> None:
        self._budget = budget
        self._items: list[Item] = []
        # What is held, and what of it would be without sound and pictures.
        self._weight = self._bare_weight = 0
        self._parts = 0

    def __iter__(self) -> Iterator[Item]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    @property
    def weight(self) -> int:
        """Bytes held."""
        return self._weight

    def has_room(self, item: Item) -> bool:
        """Whether `item` fits, if all older sound and pictures were let go."""
        is_few = len(self) < MAX_ITEMS and self._parts + _parts_in(item) <= MAX_PARTS
        return is_few and self._bare_weight + weight(item) <= self._budget

    def find(self, item_id: str, action: str) -> Item:
        """The item of this id. Raises `ItemError` with the code `item_<action>_invalid_item_id`."""
        for item in self._items:
            if item.id == item_id:
                return item
        code = f"item_{action}_invalid_item_id"
        raise ItemError(f"item_id: no item {item_id!r} in the conversation", code, "item_id")

    def has(self, item_id: str) -> bool:
        """Whether there is an item of this id."""
        return any(item.id == item_id for item in self._items)

    def speech_of(self, item_id: str) -> SpeechContent | None:
        """The speech of a spoken answer; None if the item is something else, or is not there."""
        for item in self._items:
            if item.id == item_id and isinstance(item, MessageItem) and item.content:
                part = item.content[0]
                return part if isinstance(part, SpeechContent) else None
        return None

    def before(self, item_id: str) -> str | None:
        """Id of the item in front of this one."""
        previous: str | None = None
        for item in self._items:
            if item.id == item_id:
                return previous
            previous = item.id
        return None

    @property
    def last_id(self) -> str | None:
        """Id of the last item."""
        return self._items[-1].id if self._items else None

    def add(self, item: Item, after: str | None = None) -> str | None:
        """Put an item at the end, or behind the item `after` (`root`: at the beginning).

        Returns the id of the item before it. Raises `ItemError` for an id that is taken, or an
        `after` that is not there.
        """
        if self.has(item.id):
            taken = f"item.id: there is an item {item.id!r} already"
            raise ItemError(taken, "item_create_duplicate_item_id", "item.id")
        place = len(self._items) if after is None else self._place_after(after)
        before = self._items[place - 1].id if place else None
        self._items.insert(place, item)
        self._weigh(item, 1)
        while len(self) > MAX_ITEMS:
            self._weigh(self._items.pop(0), -1)
        self._keep_to_budget()
        return before

    def replace(self, item: Item) -> None:
        """Take `item` for the one of the same id; one that was deleted meanwhile stays so."""
        for place, known in enumerate(self._items):
            if known.id == item.id:
                self._swap(place, item)
                self._keep_to_budget()

    def delete(self, item_id: str) -> None:
        """Forget an item. Raises `ItemError` when there is none of this id."""
        item = self.find(item_id, "delete")
        self._items.remove(item)
        self._weigh(item, -1)

    def _place_after(self, item_id: str) -> int:
        if item_id == ROOT:
            return 0
        for place, item in enumerate(self._items, 1):
            if item.id == item_id:
                return place
        raise ItemError(
            f"previous_item_id: no item {item_id!r} in the conversation",
            "item_create_invalid_previous_item_id",
            "previous_item_id",
        )

    def _swap(self, place: int, item: Item) -> None:
        self._weigh(self._items[place], -1)
        self._weigh(item, 1)
        self._items[place] = item

    def _weigh(self, item: Item, sign: int) -> None:
        self._weight += sign * weight(item)
        self._bare_weight += sign * weight(without_media(item))
        self._parts += sign * _parts_in(item)

    def _keep_to_budget(self) -> None:
        """Let go of the oldest media; the newest item keeps its own, which is to be answered."""
        for place, item in enumerate(self._items[:-1]):
            if self._weight <= self._budget:
                return
            if _has_media(item):
                self._swap(place, without_media(item))


def _parts_in(item: Item) -> int:
    return len(item.content) if isinstance(item, MessageItem) else 1


def _has_media(item: Item) -> bool:
    if not isinstance(item, MessageItem):
        return False
    return any(
        (isinstance(part, AudioContent) and part.uri is not None)
        or (isinstance(part, ImageContent) and part.url is not None)
        for part in item.content
    )
