"""Conversion of speech options to a request of the pipeline, shared by all speech routes."""

from sglang_omni.engines.speech.contract import SpeechStyle
from sglang_omni.entrypoints.backend import Backend
from sglang_omni.entrypoints.http.audio_output import check_speakable, choose_speaker
from sglang_omni.entrypoints.http.request_metadata import RequestMetadata
from sglang_omni.models.capabilities import Capabilities
from sglang_omni.models.ming.speech.caption import (
    MUSIC,
    MUSIC_FIELDS,
    SOUND,
    SOUND_SAMPLING,
    Caption,
    caption_json,
)
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
        _check_description(text, options)
    voice = choose_speaker(options, options.seed, backend, owner)
    return SpeechRequest(
        **vars(metadata),
        # The model was trained with a space before a description of music.
        text=f" {text.strip()}" if options.task == "music" else text,
        voice=voice if options.task == "speech" else Voice("", voice.seed),
        manner=build_speech_style(options),
        max_seconds=options.max_seconds,
        verbatim=options.task != "speech",
    )


def build_speech_style(options: SpeechOptions) -> SpeechStyle:
    """Return the style of the speech: the given options over the defaults of the task."""
    description = {"speech": None, "music": MUSIC, "sound": SOUND}[options.task]
    defaults = SpeechStyle()
    cfg, sigma, temperature = defaults.cfg, defaults.sigma, defaults.temperature
    if options.task == "sound":
        cfg, sigma, temperature = SOUND_SAMPLING
    fields = options.instructions
    return SpeechStyle(
        description=description,
        instruction=None if fields is None else caption_json(Caption(**fields.model_dump())),
        cfg=cfg if options.cfg is None else options.cfg,
        sigma=sigma if options.sigma is None else options.sigma,
        temperature=temperature if options.temperature is None else options.temperature,
    )


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


def _check_description(text: str, options: SpeechOptions) -> None:
    """Check the description and the options of music or a sound. Raises `InvalidRequest`."""
    for name in ("voice", "ref_audio", "ref_text", "instructions"):
        if getattr(options, name) is not None:
            raise InvalidRequest(f"{name}: not supported in task {options.task!r}", param=name)
    missing = [field.strip(": ") for field in MUSIC_FIELDS if field not in text]
    if options.task == "music" and missing:
        raise InvalidRequest(
            "input: a description of music must have the form 'Genre: ... Mood: ... "
            f"Instrument: ... Theme: ... Duration: 60s.'; missing: {', '.join(missing)}",
            param="input",
        )
