"""Conversion of the fields of a transcription to requests of the pipeline."""

from dataclasses import dataclass, replace

from sglang_omni.entrypoints.backend import Backend
from sglang_omni.entrypoints.requests.metadata import RequestMetadata, require_model
from sglang_omni.media.speech_spans import CutRules
from sglang_omni.pipeline.recording import RecordingPiece
from sglang_omni.pipeline.request import ChatRequest, MediaPart, Message, TextPart
from sglang_omni.pipeline.transcribe import (
    build_transcription_prompt,
    build_translation_prompt,
    max_transcript_tokens,
)
from sglang_omni.protocol.errors import InvalidRequest
from sglang_omni.protocol.sampling import SamplingParams
from sglang_omni.protocol.transcription import ChunkingVad, RecordingForm, TranscriptionForm

FILE_FIELD = "file"
# Formats whose answers have times, so that recordings are always cut for them.
TIMED_FORMATS = frozenset({"verbose_json", "srt", "vtt"})


@dataclass(frozen=True)
class TranscriptionPlan:
    """How to transcribe a recording.

    Attributes:
        prompt: What the thinker is asked in front of each piece.
        rules: How the recording is cut.
        metadata: The fields that all pieces share.
        temperature: Sampling temperature.
        max_tokens: Maximum tokens of the text of a piece.
        with_logprobs: Whether the log probabilities of tokens are needed.
    """

    prompt: str
    rules: CutRules
    metadata: RequestMetadata
    temperature: float
    max_tokens: int
    with_logprobs: bool = False

    def build_request(self, piece: RecordingPiece, index: int) -> ChatRequest:
        """Return a chat request whose answer is the text of a piece."""
        audio = MediaPart("audio", (piece.content,), FILE_FIELD)
        metadata = self.metadata
        if index:
            metadata = replace(metadata, id=f"{metadata.id}-{index}")
        return ChatRequest(
            **vars(metadata),
            messages=(Message("user", (TextPart(self.prompt), audio)),),
            sampling=SamplingParams(
                max_tokens=min(self.max_tokens, max_transcript_tokens(piece.seconds)),
                temperature=self.temperature,
                top_logprobs=0 if self.with_logprobs else None,
            ),
        )


def plan_transcription(
    form: TranscriptionForm, backend: Backend, metadata: RequestMetadata
) -> TranscriptionPlan:
    """Return how to transcribe as a form asks.

    Raises `ModelNotFound`, or `InvalidRequest`, naming the field.
    """
    if form.stream and form.response_format in ("srt", "vtt"):
        raise InvalidRequest(
            f"stream: sends events, not {form.response_format}; use json, text or verbose_json",
            param="stream",
        )
    if "word" in form.timestamp_granularities and form.response_format == "verbose_json":
        raise InvalidRequest(
            "timestamp_granularities: this model gives no times of words; ask for 'segment'",
            param="timestamp_granularities",
        )
    if form.include and form.response_format != "json":
        raise InvalidRequest("include: requires response_format=json", param="include")
    prompt = build_transcription_prompt(backend.capabilities, form.language, form.prompt)
    plan = _plan(form, backend, metadata, prompt)
    return replace(
        plan,
        rules=build_cut_rules(form.response_format, form.chunking_strategy),
        max_tokens=min(form.max_tokens or plan.max_tokens, plan.max_tokens),
        with_logprobs=plan.with_logprobs or bool(form.include),
    )


def plan_translation(
    form: RecordingForm, backend: Backend, metadata: RequestMetadata
) -> TranscriptionPlan:
    """Return how to translate a recording into English as a form asks.

    Raises `ModelNotFound`, or `InvalidRequest`, naming the field.
    """
    prompt = build_translation_prompt(backend.capabilities, form.prompt)
    return _plan(form, backend, metadata, prompt)


def _plan(
    form: RecordingForm, backend: Backend, metadata: RequestMetadata, prompt: str
) -> TranscriptionPlan:
    require_model(form.model, backend)
    return TranscriptionPlan(
        prompt,
        build_cut_rules(form.response_format, None),
        metadata,
        form.temperature,
        backend.max_tokens,
        with_logprobs=form.response_format == "verbose_json",
    )


def build_cut_rules(response_format: str, strategy: ChunkingVad | None) -> CutRules:
    """Return how a recording is cut for an answer in a format."""
    is_whole = strategy is None and response_format not in TIMED_FORMATS
    rules = CutRules() if is_whole else CutRules(whole_s=0.0)
    if strategy is None:
        return rules
    return replace(
        rules,
        threshold=strategy.threshold,
        min_silence_s=strategy.silence_duration_ms / 1000,
        padding_s=strategy.prefix_padding_ms / 1000,
    )
