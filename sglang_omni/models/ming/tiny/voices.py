"""Preset voices: synthetic recordings, their manifest, and a stand-in speaker network."""

import json
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import soundfile
from onnx import TensorProto, helper, numpy_helper

from sglang_omni.models.ming.speech.speaker_encoder import MEL_BINS
from sglang_omni.models.ming.speech.voices import MANIFEST, SPEAKER_MODEL
from sglang_omni.models.ming.tiny.draw import Draw

RATE = 44_100
SECONDS = 1.5
PEAK = 0.35
SPEAKER_DIM = 192
WIDTH = 64

# The released manifest holds absolute paths of the machine that wrote it.
AUTHORING_MACHINE = "/some/authoring/machine/"

# First two formants of five vowels, in Hz.
VOWELS = ((730, 1090), (270, 2290), (300, 870), (530, 1840), (570, 840))


@dataclass(frozen=True)
class TinyVoice:
    """A preset: where its recording lies below `talker/`, how the manifest calls that place,
    what it says, and the pitch of the one who says it."""

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


def write_voices(talker: Path, draw: Draw) -> None:
    """Write recordings, manifest and `campplus.onnx` below the folder `talker`."""
    manifest = {}
    for voice in VOICES:
        path = talker / voice.wav
        path.parent.mkdir(parents=True, exist_ok=True)
        soundfile.write(path, recording(voice, draw), RATE, subtype="PCM_16")
        listed = voice.listed_below + voice.wav
        manifest[voice.name] = {"prompt_text": voice.text, "prompt_wav_path": listed}
    text = json.dumps(manifest, ensure_ascii=False, indent=1)
    (talker / MANIFEST).write_text(text, encoding="utf-8")
    network = speaker_network(draw).SerializeToString(deterministic=True)
    (talker / SPEAKER_MODEL).write_bytes(network)


def recording(voice: TinyVoice, draw: Draw) -> np.ndarray:
    """Vowels in a row, spoken at a gliding pitch: float64 samples [1.5 s] at 44.1 kHz.

    Additive synthesis: every harmonic has the level of the vowel's formants at its frequency.
    """
    time = np.arange(int(SECONDS * RATE)) / RATE
    syllable = np.minimum(time / SECONDS * len(VOWELS), len(VOWELS) - 1e-9)
    glide = draw.normal(f"glide {voice.name}", (2,), 0.1).double().numpy()
    pitch = voice.pitch_hz * (1 + glide[0] * np.sin(2.1 * time) + glide[1] * np.sin(5.3 * time))
    phase = 2 * math.pi * np.cumsum(pitch) / RATE
    formants = np.array(VOWELS, dtype=np.float64)[syllable.astype(int)]
    sound = sum(
        _formant_level(number * pitch, formants) * np.sin(number * phase)
        for number in range(1, int(4000 / voice.pitch_hz))
    )
    sound = sound * np.sin(math.pi * (syllable % 1.0))  # each syllable swells and fades
    return sound * (PEAK / np.abs(sound).max())


def _formant_level(frequency: np.ndarray, formants: np.ndarray) -> np.ndarray:
    """Amplitude at `frequency` [n] under resonances `formants` [n, 2], 120 Hz wide."""
    distance = (frequency[:, None] - formants) / 120.0
    return (1.0 / (1.0 + distance**2)).sum(axis=1) + 0.02


def speaker_network(draw: Draw) -> onnx.ModelProto:
    """A stand-in for CAM++: log-mel frames [1, frames, 80] to a speaker vector [1, 192].

    One layer of WIDTH units per frame, the mean over time, and one layer more.
    """
    weights = {
        "frame_weight": draw.normal("speaker frame", (MEL_BINS, WIDTH), MEL_BINS**-0.5),
        "frame_bias": draw.normal("speaker bias", (WIDTH,), 0.2),
        "vector_weight": draw.normal("speaker vector", (WIDTH, SPEAKER_DIM), 4 * WIDTH**-0.5),
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
    # Versions that every onnxruntime of the last years reads.
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.checker.check_model(model)
    return model
