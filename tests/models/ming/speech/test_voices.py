"""Preset voices: finding the recordings safely, and registering them as the reference does."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch

from sglang_omni.models.ming.speech import voices
from sglang_omni.models.ming.speech.speaker_encoder import (
    SpeakerEncoder,
    compute_speaker_fbank,
    resample,
)
from sglang_omni.models.ming.speech.talker import Talker, load_talker
from sglang_omni.models.ming.speech.vae import AudioVAE, load_vae
from sglang_omni.protocol.errors import CheckpointError
from tests.testing.golden import TINY, cases, load_case

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def vae() -> AudioVAE:
    return load_vae(TINY / "talker" / "vae", CPU, torch.float32)


@pytest.fixture(scope="module")
def talker() -> Talker:
    return load_talker(TINY / "talker", CPU, torch.float32)


@pytest.mark.parametrize("name", cases("talker", "voice_", required=False))
def test_registration_matches_the_reference_stage_by_stage(
    vae: AudioVAE, talker: Talker, name: str
) -> None:
    case = load_case(name)
    presets = {preset.name: preset for preset in voices.read_presets(TINY / "talker")}
    preset = presets[case.info["voice"]]
    waveform, rate = voices.read_recording(preset.wav)
    prompt = voices.pad_prompt(resample(waveform, rate, 44100), vae, talker)
    latents, embeds = voices.encode_prompt(prompt, case["posterior_noise"], vae, talker)
    slow = resample(waveform, rate, 16000)
    features = compute_speaker_fbank(slow)
    vector = SpeakerEncoder(TINY / "talker" / "campplus.onnx")(features)
    assert preset.text == case.info["prompt_text"]
    case.check("waveform_padded", prompt)
    case.check("prompt_latents", latents)
    case.check("prompt_embeds", embeds)
    case.check("waveform_16k", slow)
    case.check("fbank", features)
    case.check("speaker_vector", vector)
    case.check("speaker_embedding", voices.project_speaker(vector, talker))


def speakers_of(checkpoint: Path) -> SpeakerEncoder | None:
    return voices.open_speaker_encoder(checkpoint / "talker")


def test_loaded_voices_are_complete_and_the_same_in_every_load(
    vae: AudioVAE, talker: Talker
) -> None:
    first = voices.load_voices(TINY, talker, vae, speakers_of(TINY))
    again = voices.load_voices(TINY, talker, vae, speakers_of(TINY))
    assert list(first) == ["DB30", "plain_en"]
    for name, voice in first.items():
        patches = len(voice.embeds)
        assert voice.latents.shape == (4 * patches, 64)
        assert voice.speaker is not None
        assert voice.speaker.shape == (talker.spk_head.out_features,)
        assert torch.equal(voice.latents, again[name].latents)
        assert torch.equal(voice.embeds, again[name].embeds)


def test_posterior_noise_belongs_to_the_voice_alone(vae: AudioVAE, talker: Talker) -> None:
    prompt = torch.zeros(14112 * 50)
    noise = voices.sample_posterior_noise("DB30", prompt, vae, talker)
    assert noise.shape == (200, 64)
    assert abs(noise.mean()) < 0.05
    assert abs(noise.std() - 1) < 0.05
    assert torch.equal(
        noise[:8], voices.sample_posterior_noise("DB30", prompt[: 14112 * 2], vae, talker)
    )
    assert not torch.equal(noise, voices.sample_posterior_noise("plain_en", prompt, vae, talker))


def checkpoint_with(folder: Path, manifest: object, *, without: str = "") -> Path:
    """A copy of the tiny checkpoint's voice files below `folder`, with another manifest."""
    for part in ("data/spks/prompt.wav", "campplus.onnx"):
        if part != without:
            target = folder / "talker" / part
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(TINY / "talker" / part, target)
    (folder / "talker" / "data" / "voice_name.json").write_text(json.dumps(manifest))
    return folder


def one(path: object) -> dict[str, dict[str, object]]:
    return {"v": {"prompt_text": "Hello.", "prompt_wav_path": path}}


def test_a_missing_speaker_network_is_reported(
    tmp_path: Path, vae: AudioVAE, talker: Talker, caplog: pytest.LogCaptureFixture
) -> None:
    checkpoint_with(tmp_path, one("data/spks/prompt.wav"), without="campplus.onnx")
    caplog.set_level("INFO", "sglang_omni")
    loaded = voices.load_voices(tmp_path, talker, vae, speakers_of(tmp_path))
    assert loaded["v"].speaker is None
    assert len(loaded["v"].embeds) > 0
    assert "campplus.onnx is missing" in caplog.text


@pytest.mark.parametrize(
    "path", ["data/spks/prompt.wav", "/home/author/ming/talker/data/spks/prompt.wav"]
)
def test_paths_of_the_authors_machine_are_repaired_by_their_suffix(
    tmp_path: Path, path: str
) -> None:
    talker = checkpoint_with(tmp_path, one(path)) / "talker"
    assert voices.read_presets(talker)[0].wav == talker / "data" / "spks" / "prompt.wav"


def test_the_longest_suffix_wins(tmp_path: Path) -> None:
    for part in ("prompt.wav", "spks/prompt.wav"):
        (tmp_path / part).parent.mkdir(exist_ok=True)
        (tmp_path / part).write_bytes(b"")
    found = voices.find_asset("/x/spks/prompt.wav", [tmp_path])
    assert found == tmp_path / "spks" / "prompt.wav"


def test_the_asset_root_is_searched_after_the_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    talker = checkpoint_with(tmp_path / "model", one("/abs/lg/other.wav")) / "talker"
    with pytest.raises(CheckpointError, match=r"other\.wav"):
        voices.read_presets(talker)
    (tmp_path / "assets" / "lg").mkdir(parents=True)
    shutil.copy(TINY / "talker/data/spks/river.wav", tmp_path / "assets/lg/other.wav")
    monkeypatch.setenv("SGLANG_OMNI_VOICE_ASSET_ROOT", str(tmp_path / "assets"))
    assert voices.read_presets(talker)[0].wav == tmp_path / "assets/lg/other.wav"


@pytest.mark.parametrize("path", ["../secret.wav", "data/../../secret.wav", "/a/../secret.wav"])
def test_a_path_that_climbs_is_refused(tmp_path: Path, path: str) -> None:
    (tmp_path / "secret.wav").write_bytes(b"")
    talker = checkpoint_with(tmp_path, one(path)) / "talker"
    with pytest.raises(CheckpointError, match=r"must not contain '\.\.'"):
        voices.read_presets(talker)


def test_a_link_out_of_the_root_is_refused(tmp_path: Path) -> None:
    talker = checkpoint_with(tmp_path / "model", one("data/link.wav")) / "talker"
    (tmp_path / "outside.wav").write_bytes(b"")
    (talker / "data" / "link.wav").symlink_to(tmp_path / "outside.wav")
    with pytest.raises(CheckpointError, match="outside"):
        voices.read_presets(talker)


def test_the_links_of_a_hugging_face_cache_are_followed(tmp_path: Path) -> None:
    model = tmp_path / "models--ming"
    talker = checkpoint_with(model / "snapshots" / "abc", one("data/voice.wav")) / "talker"
    (model / "blobs").mkdir()
    shutil.copy(TINY / "talker/data/spks/river.wav", model / "blobs" / "f00d")
    (talker / "data" / "voice.wav").symlink_to(model / "blobs" / "f00d")
    waveform, rate = voices.read_recording(voices.read_presets(talker)[0].wav)
    assert rate == 44100
    assert len(waveform) > 0


@pytest.mark.parametrize(
    "manifest",
    [["DB30"], {"v": "data/spks/prompt.wav"}, {"v": {"prompt_text": "Hello."}}, one(3)],
)
def test_a_malformed_manifest_is_refused(tmp_path: Path, manifest: object) -> None:
    talker = checkpoint_with(tmp_path, manifest) / "talker"
    with pytest.raises(CheckpointError, match=r"voice_name\.json"):
        voices.read_presets(talker)


def test_two_channels_are_averaged_and_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    left, right = np.full(8000, 0.5), np.full(8000, -0.25)
    soundfile.write(tmp_path / "two.wav", np.stack((left, right), axis=1), 16000)
    waveform, rate = voices.read_recording(tmp_path / "two.wav")
    assert (waveform.shape, rate) == ((8000,), 16000)
    assert torch.allclose(waveform, torch.full((8000,), 0.125), atol=1e-4)
    assert "2 channels" in caplog.text


def test_an_unusable_recording_is_named(tmp_path: Path) -> None:
    (tmp_path / "noise.wav").write_bytes(b"not audio")
    soundfile.write(tmp_path / "blip.wav", np.zeros(100), 16000)
    for name in ("noise.wav", "blip.wav"):
        with pytest.raises(CheckpointError, match=name):
            voices.read_recording(tmp_path / name)


def test_a_prompt_is_padded_before_the_speech(vae: AudioVAE, talker: Talker) -> None:
    padded = voices.pad_prompt(torch.ones(20000), vae, talker)
    assert len(padded) == 2 * 14112
    assert padded[: 2 * 14112 - 20000].abs().max() == 0
    assert padded[2 * 14112 - 20000 :].min() == 1
    assert len(voices.pad_prompt(padded, vae, talker)) == 2 * 14112
