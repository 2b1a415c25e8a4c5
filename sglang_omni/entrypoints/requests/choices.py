"""Several answers to one prompt."""

from dataclasses import replace

from sglang_omni.pipeline.request import ChatRequest


def expand_choices(chat: ChatRequest, count: int) -> list[ChatRequest]:
    """Return `count` copies of a request, each with its own id and, if one is given, its own seed.

    The copies share the cached prompt in the thinker.
    """
    return [chat, *(_copy_for_choice(chat, number) for number in range(1, count))]


def _copy_for_choice(chat: ChatRequest, number: int) -> ChatRequest:
    seed, voice = chat.sampling.seed, chat.voice
    return replace(
        chat,
        id=f"{chat.id}-{number}",
        sampling=replace(chat.sampling, seed=None if seed is None else seed + number),
        voice=None if voice is None else replace(voice, seed=voice.seed + number),
    )
