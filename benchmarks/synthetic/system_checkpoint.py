r"""Write a checkpoint of the whole system at the released shapes, with random weights.

    python -m benchmarks.synthetic.system_checkpoint DIR --fp8        # or --int4
    SGLANG_EXTERNAL_MODEL_PACKAGE=benchmarks.synthetic.random_models \
        sgl-omni serve --version v1 --model-path DIR --talker.min_patches 10 --talker.max_patches 10

Encoders, talker and VAE are on disk (7 GB), with `--images` the image folders too (15 GB); the
thinker (52 to 200 GB) is drawn on the GPU as it loads. With random weights no sentence would end,
so the thinker's answer is scripted: every forward pass is real, and then the next token of the
script is made the most likely. The script has 25 tokens, and its first sentence ends at the 12th;
with the options above it is 20 patches of speech, 6.4 s.

With `--thinker-files` the thinker is on disk too, and `sgl-omni serve` needs no further package:
the checkpoint is loaded and planned for as a released one, but its answers are not scripted.
"""

import argparse
import shutil
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer

from benchmarks.encoders.shapes import REAL
from benchmarks.encoders.shapes import SMALL as SMALL_ENCODERS
from benchmarks.images.shapes import REAL as REAL_IMAGES
from benchmarks.images.shapes import SMALL as SMALL_IMAGES
from benchmarks.images.shapes import ImageShapes
from benchmarks.synthetic.image_folders import remove_image_folders, write_image_folders
from benchmarks.synthetic.random_models.names import SCRIPT
from benchmarks.synthetic.speech_checkpoint import FastRandomWeights, write_speech_checkpoint
from benchmarks.synthetic.thinker_files import write_thinker_files
from benchmarks.talker.shapes import SMALL_TALKER, SMALL_VAE, TALKER, VAE
from benchmarks.thinker.shapes import SHAPE, SMALL, add_weights_options, build_config
from sglang_omni.models.base import HeadForm
from sglang_omni.models.ming.config import EncoderConfig, TalkerConfig, VAEConfig
from sglang_omni.models.ming.thinker.hf_config import ARCHITECTURE
from sglang_omni.models.ming.tiny import configs
from sglang_omni.models.ming.tiny.encoders import sample_encoder_weights
from sglang_omni.models.ming.tiny.files import write_json
from sglang_omni.models.ming.tiny.tokenizers import build_thinker_tokenizer
from sglang_omni.models.ming.tiny.words import ENGLISH
from sglang_omni.models.ming.tiny.write import write_shards

FIRST_SENTENCE, SECOND_SENTENCE = 12, 13
# So rare a stop never happens: the talker's bounds decide the length of a sentence.
NEVER_PATCHES = 1e9


def write_system_checkpoint(
    folder: Path,
    shape: dict[str, Any],
    encoders: EncoderConfig,
    speech: tuple[TalkerConfig, VAEConfig],
    images: ImageShapes | None,
    weights: str,
    device: torch.device,
    thinker_files: bool = False,
    head: HeadForm = HeadForm.FP8,
) -> None:
    """Write everything to the new folder `folder`.

    The thinker's weights are written with `thinker_files` only. `head` is the form of its head
    where they are quantized. Without `images` the checkpoint
    draws nothing.
    """
    write_speech_checkpoint(folder, *speech, patches=NEVER_PATCHES, device=device)
    tokenizer = build_thinker_tokenizer()
    config = build_config("plug-in", shape, weights, head) | encoder_config(encoders)
    if thinker_files:
        config["architectures"] = [ARCHITECTURE]
    else:
        # SGLang takes the first, which is drawn; the server knows the family by the second.
        config["architectures"] = [*config["architectures"], ARCHITECTURE]
        config[SCRIPT] = script_ids(tokenizer)
    for path in folder.glob("model*"):
        path.unlink()
    write_json(folder / "config.json", config)
    write_shards(folder, sample_encoder_weights(FastRandomWeights(device), config))
    if thinker_files:
        write_thinker_files(folder, device)
    if images is None:
        remove_image_folders(folder)
    else:
        write_image_folders(folder, images, device)


def encoder_config(encoders: EncoderConfig) -> dict[str, Any]:
    """Return both encoders' part of `config.json`."""
    tiny = configs.build_main_config(build_thinker_tokenizer())
    audio = asdict(encoders.audio)
    downsampling = {key: audio.pop(key) for key in ("ds_kernel_size", "ds_stride")}
    whole = tiny["audio_config"] | downsampling | {"whisper_encoder_config": audio}
    return {
        "mlp_depth": tiny["mlp_depth"],
        "vision_config": tiny["vision_config"] | asdict(encoders.vision),
        "audio_config": whole,
    }


def script_ids(tokenizer: Tokenizer) -> list[int]:
    """Return the token ids of two sentences of different words, and of the answer's end."""
    full_stop, question = ENGLISH.stops[0], ENGLISH.stops[1]
    words = [word for word in ENGLISH.words if word.strip().isalpha()]
    first, second = words[: FIRST_SENTENCE - 1], words[FIRST_SENTENCE - 1 :][: SECOND_SENTENCE - 1]
    ids = [_single_token_id(tokenizer, text) for text in (*first, full_stop, *second, question)]
    # Each token determines the next, so none may occur twice.
    assert len(set(ids)) == len(ids)
    return [*ids, tokenizer.token_to_id("<|role_end|>")]


def _single_token_id(tokenizer: Tokenizer, text: str) -> int:
    (only,) = tokenizer.encode(text, add_special_tokens=False).ids
    return int(only)


def main() -> None:
    """Write the checkpoint."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    add_weights_options(parser)
    parser.add_argument("--layers", type=int, help="of the thinker; fewer for a quick look")
    parser.add_argument("--images", action="store_true", help="with image output")
    parser.add_argument("--thinker-files", action="store_true", help="the thinker's weights too")
    parser.add_argument("--small", action="store_true", help="small shapes, to see that it runs")
    parser.add_argument("--force", action="store_true", help="replace the folder")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args()
    if options.force:
        shutil.rmtree(options.folder, ignore_errors=True)
    shape, encoders, speech = SHAPE, REAL, (TALKER, VAE)
    if options.small:
        shape, encoders, speech = SMALL, SMALL_ENCODERS, (SMALL_TALKER, SMALL_VAE)
    if options.layers:
        shape = shape | {"num_hidden_layers": options.layers}
    images = (SMALL_IMAGES if options.small else REAL_IMAGES) if options.images else None
    if images:
        images = replace(images, thinker_width=shape["hidden_size"])
    device = torch.device(options.device)
    write_system_checkpoint(
        options.folder,
        shape,
        encoders,
        speech,
        images,
        options.weights,
        device,
        options.thinker_files,
        options.head,
    )
    print(f"wrote {options.folder}")


if __name__ == "__main__":
    main()
