"""The tiny checkpoint: complete, deterministic, readable, audible and within its limits."""

import json
import re
from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoTokenizer

from sglang_omni.models.checkpoint_files import INDEX_FILE
from sglang_omni.models.ming.family import FAMILY
from sglang_omni.models.ming.image.model import load_image_model
from sglang_omni.models.ming.prompt.chat import render_chat
from sglang_omni.models.ming.prompt.tokenizer import ThinkerTokenizer
from sglang_omni.models.ming.speech.cfm import Sampling
from sglang_omni.models.ming.speech.prompt import (
    PromptTokenizer,
    SpeechPrompt,
    build_initial_history,
    embed_prompt,
)
from sglang_omni.models.ming.speech.talker import Talker, generate, load_talker
from sglang_omni.models.ming.speech.vae import AudioVAE, load_vae
from sglang_omni.models.ming.speech.voices import VoicePrompt, load_voices, open_speaker_encoder
from sglang_omni.models.ming.thinker.hf_config import MingConfig
from sglang_omni.models.ming.thinker.reference import (
    ReferenceLayer,
    ReferenceSparseMLP,
    ThinkerReference,
    load_reference,
)
from sglang_omni.models.ming.thinker.tensors import is_encoder_tensor, list_thinker_tensors
from sglang_omni.models.ming.tiny import write, write_tiny_checkpoint
from sglang_omni.models.ming.tiny.words import LANGUAGES
from sglang_omni.models.weights import TensorFolder
from sglang_omni.protocol.errors import StartupError
from tests.models.ming.prompt.test_chat import message
from tests.testing.golden import TINY, file_of

CPU = torch.device("cpu")
QUESTIONS = ("Hello, how are you?", "你好，今天天气怎么样？", "Tell me a story.", "12.5 + 3 = ?")
LIMIT_BYTES = 15_000_000
WEIGHTS = (".safetensors", ".onnx", ".wav", ".pt")
CONFIGURATIONS = ("", "talker/", "talker/llm/", "talker/vae/")

IMAGE_FOLDERS = ("mlp", "connector", "transformer", "vae")

# Samples and stop probabilities by voice and text.
Speech = dict[tuple[str, str], tuple[np.ndarray, list[float]]]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "tiny"
    write_tiny_checkpoint(folder)
    return folder


@pytest.fixture(scope="module")
def config(checkpoint: Path) -> MingConfig:
    return MingConfig.from_pretrained(checkpoint)


@pytest.fixture(scope="module")
def tokenizer(checkpoint: Path) -> ThinkerTokenizer:
    return ThinkerTokenizer(checkpoint)


@pytest.fixture(scope="module")
def thinker(checkpoint: Path, config: MingConfig) -> ThinkerReference:
    return load_reference(checkpoint, config.llm_config)


@pytest.fixture(scope="module")
def talker(checkpoint: Path) -> Talker:
    return load_talker(checkpoint / "talker", CPU, torch.float32)


@pytest.fixture(scope="module")
def vae(checkpoint: Path) -> AudioVAE:
    return load_vae(checkpoint / "talker" / "vae", CPU, torch.float32)


@pytest.fixture(scope="module")
def voices(checkpoint: Path, talker: Talker, vae: AudioVAE) -> dict[str, VoicePrompt]:
    return load_voices(checkpoint, talker, vae, open_speaker_encoder(checkpoint / "talker"))


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below `folder` by its relative path."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_every_file_of_the_released_layout_is_there(checkpoint: Path) -> None:
    assert set(contents(checkpoint)) == {
        "config.json",
        "preprocessor_config.json",
        *("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"),
        "model.safetensors.index.json",
        *("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"),
        "talker/config.json",
        "talker/model.safetensors",
        *(f"talker/llm/{name}.json" for name in ("config", "tokenizer", "tokenizer_config")),
        *("talker/llm/vocab.json", "talker/llm/merges.txt"),
        "talker/vae/config.json",
        "talker/vae/model.safetensors",
        "talker/campplus.onnx",
        "talker/data/voice_name.json",
        "talker/data/spks/prompt.wav",
        "talker/data/lg/prompt_15014.wav",
        *(f"{name}/config.json" for name in ("mlp", "connector", "transformer", "vae")),
        *("mlp/model.safetensors", "connector/model.safetensors"),
        *(f"{name}/diffusion_pytorch_model.safetensors" for name in ("transformer", "vae")),
        "scheduler/scheduler_config.json",
        *(f"byt5/{name}.json" for name in ("byt5", "color_idx", "font_idx")),
        "byt5/google__byt5-small/config.json",
        *("byt5/byt5_model/byt5_model.pt", "byt5/byt5_mapper/byt5_mapper.pt"),
    }


def test_it_is_small(checkpoint: Path) -> None:
    assert sum(map(len, contents(checkpoint).values())) <= LIMIT_BYTES


def test_everyone_may_read_it(checkpoint: Path) -> None:
    assert all(path.stat().st_mode & 0o444 == 0o444 for path in checkpoint.rglob("*"))


@pytest.mark.parametrize(
    "file", [*(f"{folder}config.json" for folder in CONFIGURATIONS), "preprocessor_config.json"]
)
def test_configurations_have_the_keys_of_the_golden_checkpoint(checkpoint: Path, file: str) -> None:
    ours, theirs = (json.loads((root / file).read_text()) for root in (checkpoint, TINY))
    assert keys_of(ours) == keys_of(theirs)


def keys_of(value: Any, path: str = "") -> set[str]:
    """Paths of all keys in nested dictionaries."""
    if not isinstance(value, dict):
        return {path}
    return {key for name in value for key in keys_of(value[name], f"{path}/{name}")} | {path}


def test_thinker_tensors_are_exactly_those_the_loader_wants(
    checkpoint: Path, config: MingConfig
) -> None:
    tensors = TensorFolder(checkpoint)
    stored = {name: tuple(tensors[name].shape) for name in tensors if not is_encoder_tensor(name)}
    assert stored == list_thinker_tensors(config.llm_config)


@pytest.mark.parametrize("part", [".", "talker", "talker/vae"])
def test_tensors_have_the_names_ranks_and_dtypes_of_the_golden_checkpoint(
    checkpoint: Path, part: str
) -> None:
    assert kinds_of(checkpoint / part) == kinds_of(TINY / part)


def kinds_of(folder: Path) -> set[tuple[str, int, torch.dtype]]:
    """Name with its numbered layers made equal, rank and dtype of every tensor."""
    tensors = TensorFolder(folder)
    layer = re.compile(r"(layers|blocks|experts)\.\d+")
    kinds = ((layer.sub(r"\1.N", name), tensors[name]) for name in tensors)
    return {(name, tensor.dim(), tensor.dtype) for name, tensor in kinds}


def test_the_image_folders_load_strictly_and_draw(checkpoint: Path) -> None:
    assert FAMILY.capabilities(checkpoint).image_output
    model = load_image_model(checkpoint, "cpu", "float32")
    image = model.start(model.sample_input())
    while image.state.step < image.state.num_steps:
        model.advance([image])
    pixels = model.finish(image)
    assert pixels.shape == (256, 1024, 3)
    assert 20 < pixels.std() < 120


@pytest.mark.parametrize("folder", IMAGE_FOLDERS)
def test_image_configurations_have_the_keys_of_the_golden_checkpoint(
    checkpoint: Path, folder: str
) -> None:
    golden = file_of("image/tiny_image_checkpoint")
    ours, theirs = (
        json.loads((root / folder / "config.json").read_text()) for root in (checkpoint, golden)
    )
    assert keys_of(ours) <= keys_of(theirs)


@pytest.mark.parametrize("folder", IMAGE_FOLDERS)
def test_without_one_of_its_folders_a_checkpoint_draws_no_images(
    checkpoint: Path, tmp_path: Path, folder: str
) -> None:
    for path in checkpoint.iterdir():
        if path.name != folder:
            (tmp_path / path.name).symlink_to(path)
    assert not FAMILY.capabilities(tmp_path).image_output
    (tmp_path / "sglang_omni.json").write_text('{"image_output": true}')
    assert not FAMILY.capabilities(tmp_path).image_output


def test_encoder_tensors_have_the_names_of_the_golden_checkpoint(checkpoint: Path) -> None:
    ours, theirs = (
        {name for name in TensorFolder(root) if is_encoder_tensor(name)}
        for root in (checkpoint, TINY)
    )
    assert ours == theirs  # both have 4 vision blocks, 3 deepstack mergers and 2 audio blocks


def test_the_thinker_is_spread_over_both_shards(checkpoint: Path) -> None:
    index = json.loads((checkpoint / INDEX_FILE).read_text())
    files = {file for name, file in index["weight_map"].items() if not is_encoder_tensor(name)}
    assert len(files) == 2
    stored = sum(tensor.nbytes for tensor in TensorFolder(checkpoint).values())
    assert index["metadata"]["total_size"] == stored


def test_the_same_seed_writes_the_same_bytes(checkpoint: Path, tmp_path: Path) -> None:
    write_tiny_checkpoint(tmp_path / "again", seed=0)
    assert contents(tmp_path / "again") == contents(checkpoint)


def test_another_seed_changes_all_weights_and_voices(checkpoint: Path, tmp_path: Path) -> None:
    write_tiny_checkpoint(tmp_path, seed=1)  # an empty folder is fine
    ours, theirs = contents(checkpoint), contents(tmp_path)
    changed = {file for file in ours if ours[file] != theirs[file]}
    assert changed == {file for file in ours if file.endswith(WEIGHTS)}


def test_a_folder_that_holds_something_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("keep")
    for place in (tmp_path, tmp_path / "mine.txt", tmp_path / "mine.txt" / "model"):
        with pytest.raises(StartupError, match=re.escape(str(place))):
            write_tiny_checkpoint(place)
    assert contents(tmp_path) == {"mine.txt": b"keep"}


def test_a_half_written_checkpoint_never_appears(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(talker: Path, *_: object) -> None:
        assert (talker / "model.safetensors").exists()
        raise OSError("no space left on device")

    monkeypatch.setattr(write, "write_voices", fail)
    with pytest.raises(StartupError, match="no space left"):
        write_tiny_checkpoint(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_every_word_and_mark_is_one_token(tokenizer: ThinkerTokenizer) -> None:
    texts = [text for language in LANGUAGES for text in language.words + language.marks]
    assert len(set(texts)) == len(texts)
    assert [text for text in texts if len(tokenizer.encode_text(text)) != 1] == []


def test_any_text_survives_both_tokenizers(checkpoint: Path, tokenizer: ThinkerTokenizer) -> None:
    text = "We'll see 1,234 things… 你好，世界！\n\n naïve 🎈 日本語"
    assert tokenizer.decode(tokenizer.encode_text(text)) == text
    talker = AutoTokenizer.from_pretrained(checkpoint / "talker" / "llm")
    assert talker.decode(PromptTokenizer(checkpoint / "talker").encode(text)) == text


def test_the_configuration_names_the_tokenizers_own_ids(
    config: MingConfig, tokenizer: ThinkerTokenizer
) -> None:
    llm = config.llm_config
    assert llm.eos_token_id == tokenizer.token_id("<|role_end|>")
    assert llm.image_patch_token == tokenizer.token_id("<imagePatch>")
    assert llm.video_patch_token == tokenizer.token_id("<framePatch>")
    # The released ids: from <|startoftext|> = 156891 to <tts> = 157178, then unused rows.
    first, last = tokenizer.token_id("<|startoftext|>"), tokenizer.token_id("<tts>")
    assert last - first == 157178 - 156891
    assert tokenizer.token_id("<framePatch>") - first == 157175 - 156891
    assert tokenizer.token_id("<role>") - first == 157151 - 156891
    assert last + 1 < llm.vocab_size
    assert [tokenizer.token_bytes(i) for i in (0, 255)] == [b"!", bytes([0xAD])]


def test_the_library_reads_the_same_tokenizer(
    checkpoint: Path, tokenizer: ThinkerTokenizer
) -> None:
    library = AutoTokenizer.from_pretrained(checkpoint)
    prompt = render_chat([message("user", QUESTIONS[0])])
    assert library.encode(str(prompt), add_special_tokens=False) == list(
        tokenizer.encode(prompt).ids
    )
    assert library.eos_token_id == tokenizer.token_id("<|role_end|>")


@torch.no_grad()
def answer(
    thinker: ThinkerReference, ids: Sequence[int], end: int, seed: int | None, most: int = 400
) -> list[int]:
    """Tokens up to `end`, greedy without a seed, else sampled at temperature 1."""
    draw = torch.Generator().manual_seed(seed or 0)
    keys, start, said = thinker.new_cache(), 0, list[int]()
    new = torch.tensor(ids)
    while len(said) < most:
        positions = torch.arange(start, start + len(new)).expand(3, -1)
        start += len(new)
        x = thinker.model.word_embeddings(new)
        logits = thinker(x, positions, torch.zeros_like(new), keys)[-1]
        choice = torch.multinomial(logits.softmax(-1), 1, generator=draw)
        new = logits.argmax()[None] if seed is None else choice
        if new.item() == end:
            break
        said.append(int(new))
    return said


@pytest.fixture(scope="module")
def answers(thinker: ThinkerReference, tokenizer: ThinkerTokenizer) -> dict[str, list[list[str]]]:
    """Answers to the questions: greedy ones and sampled ones, each cut into its tokens' texts."""
    end = tokenizer.token_id("<|role_end|>")
    prompts = [tokenizer.encode(render_chat([message("user", text)])).ids for text in QUESTIONS]
    said = {
        "greedy": [answer(thinker, ids, end, None) for ids in prompts],
        "sampled": [answer(thinker, ids, end, seed) for seed in (1, 2) for ids in prompts],
    }
    return {
        kind: [[tokenizer.decode([token]) for token in tokens] for tokens in many]
        for kind, many in said.items()
    }


def test_answers_are_sentences_of_one_language(answers: dict[str, list[list[str]]]) -> None:
    for tokens in answers["greedy"] + answers["sampled"]:
        (language,) = (
            spoken for spoken in LANGUAGES if set(tokens) <= {*spoken.words, *spoken.marks}
        )
        assert tokens[0] in language.words
        assert tokens[-1] in language.stops
        assert "".join(tokens).isprintable()


def test_answers_depend_on_the_question(answers: dict[str, list[list[str]]]) -> None:
    assert len(set(map("".join, answers["greedy"]))) == len(QUESTIONS)


def test_answers_end_by_themselves(answers: dict[str, list[list[str]]]) -> None:
    assert all(len(tokens) < 400 for tokens in answers["greedy"] + answers["sampled"])
    assert 15 < np.mean([len(tokens) for tokens in answers["sampled"]]) < 100


@torch.no_grad()
def test_hidden_states_keep_their_scale_and_experts_share_the_work(
    thinker: ThinkerReference, tokenizer: ThinkerTokenizer
) -> None:
    ids = torch.tensor(tokenizer.encode_text("".join(LANGUAGES[0].words[:200])))
    inputs: dict[int, tuple[torch.Tensor, ...]] = {}
    layers = [layer for layer in thinker.model.layers if isinstance(layer, ReferenceLayer)]
    for index, layer in enumerate(layers):
        layer.mlp.register_forward_pre_hook(lambda _, args, at=index: inputs.update({at: args}))
    x = thinker.model.word_embeddings(ids)
    final = thinker.model(
        x, torch.arange(len(ids)).expand(3, -1), torch.zeros_like(ids), thinker.new_cache()
    )
    assert 0.9 < final.square().mean().sqrt() < 1.1
    for index, layer in enumerate(layers[1:], 1):
        assert isinstance(layer.mlp, ReferenceSparseMLP)
        _, experts = layer.mlp.select_experts(*inputs[index])
        share = experts.flatten().bincount(minlength=16) / experts.numel()
        assert share.min() > 0.01, f"layer {index} leaves an expert out"
        assert share.max() < 0.2, f"layer {index} overloads an expert"


def noise_of(talker: Talker, seed: int) -> Iterator[tuple[torch.Tensor, torch.Tensor | None]]:
    for patch in range(1000):
        row = torch.tensor([seed]), torch.tensor([0]), torch.tensor([patch])
        yield talker.sample_patch_noise(*row, Sampling())


@torch.inference_mode()
def speak(
    checkpoint: Path, talker: Talker, vae: AudioVAE, voice: VoicePrompt, text: str, most: int
) -> tuple[np.ndarray, list[float]]:
    """Samples and stop probabilities of the plain loop and the full decode."""
    assert voice.speaker is not None
    said = SpeechPrompt(text, prompt_text=voice.text, prompt_patches=len(voice.embeds), speakers=1)
    prompt = PromptTokenizer(checkpoint / "talker").assemble(said)
    patches = list(
        generate(
            talker,
            embed_prompt(talker, prompt, voice.speaker[None], voice.embeds),
            build_initial_history(talker, voice.latents),
            noise_of(talker, 7),
            min_patches=3,
            max_patches=most,
            sampling=Sampling(),
        )
    )
    latents = torch.cat([patch.latents for patch in patches])
    assert 0.7 < latents.std() < 1.5
    stops = [patch.stop_probs[1].item() for patch in patches]
    return vae.decoder(latents[None])[0].numpy(), stops


@pytest.fixture(scope="module")
def speech(
    checkpoint: Path, talker: Talker, vae: AudioVAE, voices: dict[str, VoicePrompt]
) -> Speech:
    """Two sentences by each voice."""
    return {
        (name, text): speak(checkpoint, talker, vae, voice, text, most=60)
        for name, voice in voices.items()
        for text in QUESTIONS[:2]
    }


def test_voices_are_the_released_ones_and_differ(voices: dict[str, VoicePrompt]) -> None:
    assert list(voices) == ["DB30", "lingguang"]
    first, second = voices.values()
    assert first.text == "感谢你的认可。"
    assert first.speaker is not None
    assert second.speaker is not None
    assert torch.corrcoef(torch.stack((first.speaker, second.speaker)))[0, 1] < 0.9
    assert torch.corrcoef(torch.stack((first.latents, second.latents)).flatten(1))[0, 1] < 0.9


def test_a_manifest_entry_needs_its_path_repaired(checkpoint: Path) -> None:
    manifest = json.loads((checkpoint / "talker" / "data" / "voice_name.json").read_text())
    paths = [Path(entry["prompt_wav_path"]) for entry in manifest.values()]
    assert [path.is_absolute() for path in paths] == [False, True]
    assert not paths[1].exists()


def test_speech_is_audible_and_within_full_scale(speech: Speech) -> None:
    for pcm, _ in speech.values():
        assert np.isfinite(pcm).all()
        assert np.abs(pcm).max() < 0.9
        assert 0.01 < np.sqrt(np.square(pcm).mean()) < 0.2
        # No tenth of a second is silence to the trimmer, whose threshold is 0.001.
        frames = pcm[: len(pcm) // 4410 * 4410].reshape(-1, 4410)
        assert np.abs(frames).mean(axis=1).min() > 2e-3


def test_speech_depends_on_text_and_voice(speech: Speech) -> None:
    heard = [pcm[: 4 * 14112] for pcm, _ in speech.values()]
    level = np.sqrt(np.square(heard).mean())
    for one, other in combinations(heard, 2):
        assert np.sqrt(np.square(one - other).mean()) > 0.05 * level


def test_the_stop_head_ends_speech_now_and_then(speech: Speech) -> None:
    stops = [stop for _, probabilities in speech.values() for stop in probabilities]
    assert 0.02 < np.mean([stop > 0.5 for stop in stops]) < 0.5
    assert all(len(probabilities) < 60 for _, probabilities in speech.values())


def test_the_decoder_does_not_clip_whatever_the_latents(vae: AudioVAE) -> None:
    latents = torch.randn(1, 200, 64, generator=torch.Generator().manual_seed(0))
    for scale in (0.0, 1.0, 3.0):
        assert vae.decoder(scale * latents).abs().max() < 1.0
