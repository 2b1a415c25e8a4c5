"""Conversion of the fields of a transcription to a request of the pipeline."""

from sglang_omni.entrypoints.backend import Backend
from sglang_omni.entrypoints.requests.metadata import RequestMetadata, require_model
from sglang_omni.media.limits import MediaLimits
from sglang_omni.pipeline.request import ChatRequest, MediaPart, Message, TextPart
from sglang_omni.pipeline.transcribe import build_transcription_prompt, max_transcript_tokens
from sglang_omni.protocol.sampling import SamplingParams
from sglang_omni.protocol.transcription import TranscriptionForm


def build_transcription_request(
    form: TranscriptionForm, audio: MediaPart, backend: Backend, metadata: RequestMetadata
) -> ChatRequest:
    """Return a chat request whose answer is the transcript.

    Raises `ModelNotFound`, or `InvalidRequest`, naming the field.
    """
    require_model(form.model, backend)
    prompt = build_transcription_prompt(backend.capabilities, form.language, form.prompt)
    limit = form.max_tokens or max_transcript_tokens(MediaLimits.audio_seconds)
    return ChatRequest(
        **vars(metadata),
        messages=(Message("user", (TextPart(prompt), audio)),),
        sampling=SamplingParams(
            max_tokens=min(limit, backend.max_tokens), temperature=form.temperature
        ),
        needs_speech=True,
    )
