"""Conversion of speech options to a request of the pipeline, shared by all speech routes."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sglang_omni.entrypoints.backend import Backend
from sglang_omni.entrypoints.requests.error_path import with_error_path
from sglang_omni.entrypoints.requests.metadata import RequestMetadata
from sglang_omni.entrypoints.requests.reading import build_reading
from sglang_omni.entrypoints.requests.speech_options import SPEAKER_FIELDS, merge_options
from sglang_omni.entrypoints.requests.ssml import apply_ssml
from sglang_omni.entrypoints.requests.voices import check_speakable, choose_speaker
from sglang_omni.models.capabilities import Capabilities, join_words
from sglang_omni.models.speech_text import SpeechStyle, SpeechText
from sglang_omni.pipeline.request import SpeechRequest, Voice
from sglang_omni.protocol.errors import InvalidRequest
from sglang_omni.protocol.speech import SpeechOptions, TurnBody


def count_characters(spoken: str | Sequence[TurnBody]) -> int:
    """Return how many characters a text or the turns of several speakers have."""
    return len(spoken) if isinstance(spoken, str) else sum(len(turn.text) for turn in spoken)


def build_speech_request(
    spoken: str | Sequence[TurnBody],
    options: SpeechOptions,
    backend: Backend,
    metadata: RequestMetadata,
    owner: str | None,
) -> SpeechRequest:
    """Return a request to read a text aloud, or what several speakers say in turn.

    Raises `InvalidRequest`, naming the field.
    """
    if isinstance(spoken, str):
        return _build_request(spoken, options, backend, metadata, owner)
    if options.task != "speech":
        raise InvalidRequest(f"input: must be a text in task {options.task!r}", param="input")
    first, *later = (
        _build_turn(turn, index, options, backend, metadata, owner)
        for index, turn in enumerate(spoken)
    )
    return replace(first, later_turns=tuple(turn for one in later for turn in one.turns))


def _build_turn(
    turn: TurnBody,
    index: int,
    options: SpeechOptions,
    backend: Backend,
    metadata: RequestMetadata,
    owner: str | None,
) -> SpeechRequest:
    """Return a request of one turn. An error names the turn's field, or the body's."""
    path = f"input.{index}."

    def add_path(param: str) -> str:
        if param == "input":
            return f"{path}text"
        return path + param if param.partition(".")[0] in turn.model_fields_set else param

    prefix = path if SPEAKER_FIELDS & turn.model_fields_set else ""
    merged = merge_options(turn, options)
    with with_error_path(add_path):
        return _build_request(turn.text, merged, backend, metadata, owner, prefix)


def _build_request(
    text: str,
    options: SpeechOptions,
    backend: Backend,
    metadata: RequestMetadata,
    owner: str | None,
    speaker_prefix: str = "",
) -> SpeechRequest:
    """Return a request to read `text` aloud, which may be SSML.

    Raises `InvalidRequest`, naming the field, with `speaker_prefix` before those of the speaker.
    """
    _check_capabilities(options, backend.capabilities)
    if options.task != "speech":
        _check_description(options)
        text = backend.speech_text.description(options.task, text)
    voice = choose_speaker(options, options.seed, backend, owner, speaker_prefix)
    request = SpeechRequest(
        **vars(metadata),
        text=text,
        voice=voice if options.task == "speech" else Voice("", voice.seed),
        reading=build_reading(options, backend),
        style=build_speech_style(options, backend.speech_text),
        max_seconds=options.max_seconds,
        verbatim=options.task != "speech",
        timestamps=options.timestamps or "none",
    )
    return request if request.verbatim else _prepare_text(request, backend.capabilities)


def _prepare_text(request: SpeechRequest, capabilities: Capabilities) -> SpeechRequest:
    """Return the request without markup. Raises `InvalidRequest` for words that are not spoken."""
    given = request.reading.lexicon
    request = apply_ssml(request)
    added = [words for sign, words in request.reading.lexicon.items() if sign not in given]
    for text in (request.text, *added):
        check_speakable(text, capabilities, "input", given)
    return request


def build_speech_style(options: SpeechOptions, speech_text: SpeechText) -> SpeechStyle:
    """Return the style of the speech: the given options over the defaults of the task."""
    instructions = options.instructions
    style = speech_text.style(
        options.task, None if instructions is None else instructions.model_dump()
    )
    named = {"cfg": options.cfg, "sigma": options.sigma, "temperature": options.temperature}
    changes: dict[str, Any] = {name: value for name, value in named.items() if value is not None}
    return replace(style, **changes)


def _check_capabilities(options: SpeechOptions, capabilities: Capabilities) -> None:
    """Check that the checkpoint supports the options. Raises `InvalidRequest`."""
    if options.task not in capabilities.speech_tasks:
        raise InvalidRequest(
            f"task: {capabilities.name} does not make {options.task}; "
            f"it makes {' and '.join(capabilities.speech_tasks)}",
            param="task",
        )
    if options.instructions is not None and not capabilities.speech_instructions:
        raise InvalidRequest(
            f"instructions: {capabilities.name} does not support them; leave them out",
            param="instructions",
        )
    given = {} if options.instructions is None else options.instructions.model_dump()
    for field, value in given.items():
        if value is not None and field not in capabilities.followed_fields:
            raise InvalidRequest(
                f"instructions.{field}: {capabilities.name} does not follow it; "
                f"it follows {join_words(capabilities.followed_fields)}",
                param=f"instructions.{field}",
            )


def _check_description(options: SpeechOptions) -> None:
    """Raise `InvalidRequest` for options of a voice in a task without one."""
    for name in ("voice", "ref_audio", "ref_text", "instructions", "timestamps"):
        if getattr(options, name) not in (None, "none"):
            raise InvalidRequest(f"{name}: not supported in task {options.task!r}", param=name)
