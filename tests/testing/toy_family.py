"""A small model family: it echoes text, speaks sine waves and sees mean colours."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args

import numpy as np
import torch

from sglang_omni.engines.thinker import contract as thinker
from sglang_omni.models import speech
from sglang_omni.models.answer_grammar import build_answer_grammar
from sglang_omni.models.base import ModelFamily
from sglang_omni.models.capabilities import Capabilities, SpeechTask, read_capabilities
from sglang_omni.models.chat import PromptVideo, TokenizedPrompt, Turn
from sglang_omni.models.encoder import Cost
from sglang_omni.models.json_file import read_json
from sglang_omni.models.plain import PLAIN_MEDIA_FORMAT, PlainChat, PlainSpeechText, PlainTrimmer
from sglang_omni.models.speech_text import SpeechStyle
from sglang_omni.models.tool_calls import ToolCallParser, ToolTokenDecoder
from sglang_omni.protocol.errors import InvalidRequest
from sglang_omni.protocol.tools import ToolCall

RATE, FRAME_S, CONTEXT, WIDTH = 16_000, 0.1, 4096, 4
MEDIA_TOKEN, CALL, CALL_CLOSE = 256, 257, 258
TOY = Capabilities("Toy", ("en", "zh"), get_args(SpeechTask), True, "Write.", None, True, ("Hi!",))


class ToyChat(PlainChat):
    """Tokens are bytes; a chat is its messages, one after the other."""

    tool_parser: Any = ToolCallParser
    answer_grammar: Any = staticmethod(build_answer_grammar)
    token_name: Any = staticmethod("<{}>".format)
    vocabulary_size = CALL_CLOSE + 1
    encode_prompt: Any = staticmethod(lambda text: tuple(text.encode()))
    tool_tokens: Any = property(lambda self: ToolTokenDecoder(self, (CALL, CALL_CLOSE)))

    def tokenize(self, messages: Sequence[Turn], *_: Any) -> TokenizedPrompt:
        if not messages or messages[-1].role not in ("user", "tool"):
            raise InvalidRequest("the last message must be the user's", param="messages")
        ids, runs = list[int](), list[tuple[int, int]]()
        for item in (item for message in messages for item in message.content):
            if isinstance(item, ToolCall):
                call = f'{{"name": "{item.name}", "arguments": {item.arguments}}}'
                ids += [CALL, *call.encode(), CALL_CLOSE]
            elif hasattr(item, "text"):
                ids += item.text.encode()
            else:
                for _step in range(len(item.seconds) if isinstance(item, PromptVideo) else 1):
                    runs.append((len(ids), len(ids) + item.tokens - 1))
                    ids += [MEDIA_TOKEN] * item.tokens
        return TokenizedPrompt(tuple(ids), tuple(runs))

    def token_bytes(self, token_id: int) -> bytes:
        return bytes([token_id]) if token_id < MEDIA_TOKEN else b""


class EchoThinker:
    """A `StreamWorker` that answers with the prompt's own text."""

    def __init__(self, settings: thinker.ThinkerSettings) -> None:
        self.info = thinker.ThinkerInfo(CONTEXT, 16 * CONTEXT, 16, False, False)

    async def run(self, request_id: str, request: thinker.ThinkerRequest) -> AsyncIterator[Any]:
        answer = [token for token in request.input_ids if token < MEDIA_TOKEN] or [*b"nothing"]
        limit, prompt = request.sampling.max_tokens, len(request.input_ids)
        for count, token in enumerate(answer[:limit], 1):
            last = count == min(len(answer), limit)
            reason: thinker.FinishReason = "length" if count == limit < len(answer) else "stop"
            yield thinker.ThinkerOutput((token,), prompt, 0, count, reason if last else None)

    async def counters(self) -> dict[str, float]:
        return {}

    async def profile(self, folder: str | None) -> None: ...

    async def close(self) -> None: ...


class ToyEncoder:
    """A row of `WIDTH` equal numbers, the mean of the input, for each token."""

    def __init__(self, kind: str) -> None:
        self.kind, self.description = kind, f"toy {kind} encoder"

    def estimate_cost(self, shape: tuple[int, ...], dtype: str) -> Cost:
        return Cost(1.0, {}, steps=1)

    def validate(self, array: np.ndarray) -> None: ...

    def encode(self, arrays: Sequence[np.ndarray]) -> list[torch.Tensor]:
        return [torch.full((self._tokens(one.shape), WIDTH), float(one.mean())) for one in arrays]

    def _tokens(self, shape: tuple[int, ...]) -> int:
        if self.kind == "audio":
            return PLAIN_MEDIA_FORMAT.audio_tokens(shape[0])
        grid = PLAIN_MEDIA_FORMAT.patch_grid(shape)
        return grid[0] * PLAIN_MEDIA_FORMAT.image_tokens(grid)

    def sample_array(self) -> np.ndarray:
        return np.zeros(RATE) if self.kind == "audio" else np.zeros((1, 32, 32, 3))


class ToySpeechText(PlainSpeechText):
    """Instructions, whatever they are, raise the pitch by an octave."""

    def style(self, task: SpeechTask, instructions: Any = None) -> SpeechStyle:
        return SpeechStyle(instruction=str(instructions) if instructions else None)


class ToySpeech:
    """Speech is a sine wave whose pitch is the voice, a tenth of a second for each letter."""

    device, open_trimmer = torch.device("cpu"), PlainTrimmer

    def __init__(self, voices: dict[str, float]) -> None:
        self.voices = voices
        self.info = speech.SpeechModelInfo(RATE, FRAME_S, tuple(voices), has_speaker_encoder=False)

    def no_voice(self) -> float:
        return 660.0

    def encode_voice(self, key: str, samples: torch.Tensor, sample_rate: int) -> Any:
        return speech.EncodedRecording(samples[:1].numpy(), 1, 0)

    def read_voice(self, key: str, text: str | None, values: torch.Tensor, latents: int) -> float:
        return 330.0

    def prepare(self, text: str, voice: float, style: SpeechStyle) -> SimpleNamespace:
        pitch = 2 * voice if style.instruction else voice
        return SimpleNamespace(num_tokens=len(text), frames_left=len(text), pitch=pitch)

    def max_frames(self, text: str) -> int:
        return max(4, 2 * len(text))

    def open_executor(self, settings: speech.ExecutorSettings) -> "SineExecutor":
        return SineExecutor(settings.slots)


class SineExecutor:
    """Makes a frame of a sine wave for each slot of a step."""

    overlaps = False
    step_times: speech.StepTimes | None = None

    def __init__(self, slots: int) -> None:
        self.max_batch_size = slots
        self._inputs: dict[int, SimpleNamespace] = {}

    def prefill(self, admissions: Sequence[speech.Admission]) -> None:
        self._inputs |= {one.slot: one.input for one in admissions}

    def begin(self, slots: Sequence[int]) -> None:
        self._slots = slots
        for slot in slots:
            self._inputs[slot].frames_left -= 1

    def read_stop_probabilities(self) -> list[float]:
        return [float(self._inputs[slot].frames_left <= 0) for slot in self._slots]

    def finish(self, last: Sequence[bool]) -> None: ...

    def collect(self) -> list[np.ndarray]:
        time = np.arange(int(RATE * FRAME_S), dtype=np.float32) / RATE
        pitches = (self._inputs[slot].pitch for slot in self._slots)
        return [0.3 * np.sin(2 * np.pi * pitch * time, dtype=np.float32) for pitch in pitches]


class ToyFamily(ModelFamily):
    """The family; a checkpoint is a `config.json` with the pitch of each voice, and a tokenizer."""

    media_format, speech_text = PLAIN_MEDIA_FORMAT, ToySpeechText()
    thinker_factory = "tests.testing.toy_family:EchoThinker"

    def capabilities(self, checkpoint: Path) -> Capabilities:
        return read_capabilities(checkpoint, TOY)

    def chat_format(self, checkpoint: Path) -> ToyChat:
        return ToyChat()

    def voice_names(self, checkpoint: Path) -> tuple[str, ...]:
        return tuple(read_json(checkpoint / "config.json")["voices"])

    def load_speech_model(self, checkpoint: Path, device: str, dtype: str) -> ToySpeech:
        return ToySpeech(read_json(checkpoint / "config.json")["voices"])

    def load_vision_encoder(self, checkpoint: Path, *_: Any, **__: Any) -> ToyEncoder:
        return ToyEncoder("image")

    def load_audio_encoder(self, checkpoint: Path, *_: Any) -> ToyEncoder:
        return ToyEncoder("audio")

    def encoder_width(self, checkpoint: Path) -> int:
        return WIDTH


FAMILY = ToyFamily()
