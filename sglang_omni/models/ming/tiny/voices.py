"""Preset voices: synthetic recordings, their manifest, and a stand-in speaker encoder."""

import json
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import soundfile
from onnx import TensorProto, helper, numpy_helper

from sglang_omni.models.ming.speech.speaker_encoder import MEL_BINS
from sglang_omni.models.ming.speech.voice_manifest import MANIFEST
from sglang_omni.models.ming.speech.voices import SPEAKER_MODEL
from sglang_omni.models.ming.tiny.draw import WeightSampler

SAMPLE_RATE = 44_100
DURATION_S = 1.5
PEAK = 0.35
SPEAKER_DIM = 192
HIDDEN_UNITS = 64

# The released manifest contains absolute paths of the machine that wrote it.
AUTHORING_MACHINE = "/some/authoring/machine/"

# First two formants of five vowels, in Hz.
VOWELS = ((730, 1090), (270, 2290), (300, 870), (530, 1840), (570, 840))


@dataclass(frozen=True)
class TinyVoice:
    """A preset voice.

    `wav` is the path of its recording below `talker/`; `listed_below` is the prefix of this path in
    the manifest. `text` is the transcript, `pitch_hz` the pitch of the speaker.
    """

    name: str
    wav: str
    text: str
    pitch_hz: float
    listed_below: str = ""


VOICES = (
    TinyVoice("DB30", "data/spks/prompt.wav", "感谢你的认可。", 210.0),
    TinyVoice(
        "lingguang",
        "data/lg/prompt_15014.wav",
        "诶，你今天有空吗？我们能不能聊聊这件事啊？",
        120.0,
        listed_below=AUTHORING_MACHINE,
    ),
)


def write_voices(talker: Path, sampler: WeightSampler) -> None:
    """Write recordings, manifest and `campplus.onnx` below the folder `talker`."""
    manifest = {}
    for voice in VOICES:
        path = talker / voice.wav
        path.parent.mkdir(parents=True, exist_ok=True)
        soundfile.write(path, synthesize_recording(voice, sampler), SAMPLE_RATE, subtype="PCM_16")
        listed_path = voice.listed_below + voice.wav
        manifest[voice.name] = {"prompt_text": voice.text, "prompt_wav_path": listed_path}
    text = json.dumps(manifest, ensure_ascii=False, indent=1)
    (talker / MANIFEST).write_text(text, encoding="utf-8")
    network = build_speaker_network(sampler).SerializeToString(deterministic=True)
    (talker / SPEAKER_MODEL).write_bytes(network)


def synthesize_recording(voice: TinyVoice, sampler: WeightSampler) -> np.ndarray:
    """Synthesise a sequence of vowels at a gliding pitch: float64 samples [1.5 s] at 44.1 kHz.

    Additive synthesis: every harmonic has the level of the vowel's formants at its frequency.
    """
    time = np.arange(int(DURATION_S * SAMPLE_RATE)) / SAMPLE_RATE
    syllable = np.minimum(time / DURATION_S * len(VOWELS), len(VOWELS) - 1e-9)
    glide = sampler.sample_normal(f"glide {voice.name}", (2,), 0.1).double().numpy()
    pitch = voice.pitch_hz * (1 + glide[0] * np.sin(2.1 * time) + glide[1] * np.sin(5.3 * time))
    phase = 2 * math.pi * np.cumsum(pitch) / SAMPLE_RATE
    formants = np.array(VOWELS, dtype=np.float64)[syllable.astype(int)]
    sound = sum(
        _compute_formant_level(number * pitch, formants) * np.sin(number * phase)
        for number in range(1, int(4000 / voice.pitch_hz))
    )
    sound = sound * np.sin(math.pi * (syllable % 1.0))  # Each syllable fades in and out.
    return sound * (PEAK / np.abs(sound).max())


def _compute_formant_level(frequency: np.ndarray, formants: np.ndarray) -> np.ndarray:
    """Return the amplitude at `frequency` [n] for resonances `formants` [n, 2], 120 Hz wide."""
    distance = (frequency[:, None] - formants) / 120.0
    return (1.0 / (1.0 + distance**2)).sum(axis=1) + 0.02


def build_speaker_network(sampler: WeightSampler) -> onnx.ModelProto:
    """Build a stand-in for CAM++: log-mel frames [1, frames, 80] to a speaker vector [1, 192].

    One layer of HIDDEN_UNITS units per frame, the mean over time, and one more layer.
    """
    weights = {
        "frame_weight": sampler.sample_normal(
            "speaker frame", (MEL_BINS, HIDDEN_UNITS), MEL_BINS**-0.5
        ),
        "frame_bias": sampler.sample_normal("speaker bias", (HIDDEN_UNITS,), 0.2),
        "vector_weight": sampler.sample_normal(
            "speaker vector", (HIDDEN_UNITS, SPEAKER_DIM), 4 * HIDDEN_UNITS**-0.5
        ),
    }
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["input", "frame_weight"], ["projected"]),
            helper.make_node("Add", ["projected", "frame_bias"], ["shifted"]),
            helper.make_node("Tanh", ["shifted"], ["frames"]),
            helper.make_node("ReduceMean", ["frames"], ["mean"], axes=[1], keepdims=0),
            helper.make_node("MatMul", ["mean", "vector_weight"], ["output"]),
        ],
        "speaker",
        [helper.make_tensor_value_info("input", TensorProto.FLOAT, [1, "frames", MEL_BINS])],
        [helper.make_tensor_value_info("output", TensorProto.FLOAT, [1, SPEAKER_DIM])],
        [numpy_helper.from_array(w.numpy(), name) for name, w in weights.items()],
    )
    # Old versions, which every recent onnxruntime reads.
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.checker.check_model(model)
    return model
