"""Conversion of speech options to a request of the pipeline, shared by all speech routes."""

from dataclasses import replace
from typing import Any

from sglang_omni.entrypoints.backend import Backend
from sglang_omni.entrypoints.requests.metadata import RequestMetadata
from sglang_omni.entrypoints.requests.voices import check_speakable, choose_speaker
from sglang_omni.models.capabilities import Capabilities
from sglang_omni.models.speech_text import SpeechStyle, SpeechText
from sglang_omni.pipeline.request import SpeechRequest, Voice
from sglang_omni.protocol.errors import InvalidRequest
from sglang_omni.protocol.speech import SpeechOptions


def build_speech_request(
    text: str,
    options: SpeechOptions,
    backend: Backend,
    metadata: RequestMetadata,
    owner: str | None,
) -> SpeechRequest:
    """Return a request to read `text` aloud. Raises `InvalidRequest`, naming the field."""
    _check_capabilities(options, backend.capabilities)
    if options.task == "speech":
        check_speakable(text, backend.capabilities, "input")
    else:
        _check_description(options)
        text = backend.speech_text.description(options.task, text)
    voice = choose_speaker(options, options.seed, backend, owner)
    return SpeechRequest(
        **vars(metadata),
        text=text,
        voice=voice if options.task == "speech" else Voice("", voice.seed),
        style=build_speech_style(options, backend.speech_text),
        max_seconds=options.max_seconds,
        verbatim=options.task != "speech",
    )


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


def _check_description(options: SpeechOptions) -> None:
    """Raise `InvalidRequest` for options of a voice in a task without one."""
    for name in ("voice", "ref_audio", "ref_text", "instructions"):
        if getattr(options, name) is not None:
            raise InvalidRequest(f"{name}: not supported in task {options.task!r}", param=name)
