"""From sizes and cards to a placement. Pure.

The thinker takes the most ranks that still leave a card over; the talker and the encoders go there,
so that speech and pictures do not slow the answers down. Where no card is over, everything shares.
Whatever was given stays as it is.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from sglang_omni.engines.runtime.gpus import Gpu
from sglang_omni.models.sizes import Sizes

GIB = 1 << 30
# Beside its weights and cache a rank of the thinker holds a CUDA context, graphs, activations of a
# prefill and SGLang's buffers.
THINKER_RESERVE = 7 * GIB
# The same of the others: context, the largest forward pass, the talker's slots and graphs.
IMAGE_RESERVE, AUDIO_RESERVE, TALKER_RESERVE = 6 * GIB, 3 * GIB, 8 * GIB
# Of a card's memory, what the driver and fragments keep.
USABLE = 0.97
RANKS = (4, 2, 1)


@dataclass(frozen=True)
class Given:
    """What the user has fixed; None, or no card, is for the plan to choose. The talker has a
    replica on each of its cards, and so have the encoders, the image encoder on each so many ranks.
    `encoders` says if there are any."""

    tp_size: int | None = None
    thinker: tuple[int, ...] = ()
    talker: tuple[int, ...] = ()
    image_encoder: tuple[int, ...] = ()
    image_encoder_ranks: int = 1
    audio_encoder: tuple[int, ...] = ()
    encoders: bool = True


@dataclass(frozen=True)
class Share:
    """A part of the system on one card: bytes of its weights, and of everything else it needs."""

    part: str
    card: int
    weights: int
    working: int


@dataclass(frozen=True)
class Plan:
    """Who runs where.

    `kv_tokens` is what the thinker's cache can hold. `mem_fraction_static` leaves SGLang's own
    working memory free and nothing else, so that it does not matter whether the other engines
    have taken theirs before it looks: `kv_tokens` is what leaves room for them.
    """

    thinker: tuple[int, ...]
    talker: tuple[int, ...]
    image_encoder: tuple[int, ...]
    audio_encoder: tuple[int, ...]
    shares: tuple[Share, ...]
    kv_tokens: int
    fp8: bool
    mem_fraction_static: float


def make_plan(sizes: Sizes, cards: Sequence[Gpu], given: Given) -> Plan | None:
    """The best placement that fits, or None."""
    for layout in layouts(cards, given):
        plan = fill(sizes, cards, given, *layout)
        if plan is not None:
            return plan
    return None


def layouts(
    cards: Sequence[Gpu], given: Given
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """(cards of the thinker, cards over for the others), best first."""
    indices = [card.index for card in cards]
    if given.thinker:
        others = tuple(index for index in indices if index not in given.thinker)
        yield given.thinker, others or given.thinker
        return
    ranks = [given.tp_size] if given.tp_size else [r for r in RANKS if r <= len(indices)]
    for count in ranks:
        if count < len(indices):
            yield tuple(indices[:count]), tuple(indices[count:])
    for count in ranks:
        if count <= len(indices):
            yield tuple(indices[:count]), tuple(indices[:count])


def fill(
    sizes: Sizes,
    cards: Sequence[Gpu],
    given: Given,
    thinker: tuple[int, ...],
    others: tuple[int, ...],
) -> Plan | None:
    """A plan with the thinker on `thinker`, the rest on `others` or where it was given; None if
    it does not fit."""
    total = {card.index: int(card.total_bytes * USABLE) for card in cards}
    talker = given.talker or others[:1]
    # The encoders beside each other, apart from the talker where there is a card for that.
    free = others[1:] if len(others) > given.image_encoder_ranks else others
    images = given.image_encoder or free[: given.image_encoder_ranks]
    audio = given.audio_encoder or free[:1]
    if given.encoders and (not images or len(images) % given.image_encoder_ranks):
        return None
    shares = [
        Share("thinker", card, sizes.thinker // len(thinker), THINKER_RESERVE) for card in thinker
    ]
    shares += [Share("talker", card, sizes.talker, TALKER_RESERVE) for card in talker]
    if given.encoders:
        weights = sizes.image_encoder // given.image_encoder_ranks
        shares += [Share("image encoder", card, weights, IMAGE_RESERVE) for card in images]
        shares += [
            Share("audio encoder", card, sizes.audio_encoder, AUDIO_RESERVE) for card in audio
        ]
    if not {share.card for share in shares} <= total.keys():
        return None
    left = {
        index: size - sum(s.weights + s.working for s in shares if s.card == index)
        for index, size in total.items()
    }
    per_token = sizes.kv_bytes // min(len(thinker), sizes.kv_heads)
    kv_tokens = min(left[card] for card in thinker) // per_token
    if min(left.values()) < 0 or kv_tokens < sizes.context:
        return None
    smallest = min(total[card] for card in thinker)
    return Plan(
        thinker=thinker,
        talker=talker,
        image_encoder=tuple(images) if given.encoders else (),
        audio_encoder=audio if given.encoders else (),
        shares=tuple(shares),
        kv_tokens=kv_tokens,
        fp8=sizes.fp8,
        mem_fraction_static=round(1 - THINKER_RESERVE / smallest, 3),
    )


def nearest(sizes: Sizes, cards: Sequence[Gpu], given: Given) -> tuple[Plan | None, Plan | None]:
    """What would fit: the same cards with the thinker in FP8, and the fewest cards like the last
    that would do. Either may be None."""
    free = replace(given, tp_size=None, thinker=(), talker=(), image_encoder=(), audio_encoder=())
    quantised = None if sizes.fp8 else make_plan(sizes.to_fp8(), cards, free)
    pattern = cards[-1]
    for count in range(1, 9):
        more = [replace(pattern, index=index) for index in range(count)]
        plan = make_plan(sizes, more, free)
        if plan is not None:
            return quantised, plan
    return quantised, None
