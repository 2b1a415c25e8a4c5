"""Options of speech: those of a part over those that all parts share."""

from typing import TypeVar

from pydantic import BaseModel

from sglang_omni.models.capabilities import Capabilities
from sglang_omni.protocol.speech import SpeakerFields, SpeechOptions

SPEAKER_FIELDS = frozenset({"voice", "ref_audio", "ref_text"})
Styled = TypeVar("Styled", bound=SpeakerFields)


def merge_options(own: BaseModel, shared: SpeechOptions) -> SpeechOptions:
    """Return the shared options, overridden by a part's own.

    If the part sets any field of the speaker, the shared speaker is ignored.
    """
    shared_fields = {name: getattr(shared, name) for name in shared.model_fields_set}
    own_fields = {name: getattr(own, name) for name in own.model_fields_set}
    if SPEAKER_FIELDS & own_fields.keys():
        shared_fields = {
            name: value for name, value in shared_fields.items() if name not in SPEAKER_FIELDS
        }
    merged = {**shared_fields, **own_fields}
    fields = SpeechOptions.model_fields.keys()
    return SpeechOptions.model_construct(
        **{name: value for name, value in merged.items() if name in fields}
    )


def drop_unsupported_style(options: Styled, capabilities: Capabilities) -> Styled:
    """Return `options` without a style in free text if the checkpoint does not support it.

    Agents send one with every text. Fields such as an emotion stay, and are rejected later.
    """
    given = options.instructions
    if given is None or "style" in capabilities.followed_fields:
        return options
    is_free_text = given.model_fields_set == {"style"}
    return options.model_copy(update={"instructions": None}) if is_free_text else options
