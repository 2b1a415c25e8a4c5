"""The program that trains both halves names what is missing, and its options exist."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from cookbook.ming_mini_2.capabilities import (
    LEAVABLE,
    THINKER_ABILITIES,
    declare,
    speech_abilities,
)
from sglang_omni.models.capabilities import read_capabilities
from sglang_omni.models.ming.capabilities import RELEASED
from tests.testing.command_help import OPTION, read_options

RECIPE = Path(__file__).parents[3] / "cookbook/ming_mini_2/recipe.sh"
COMMAND = re.compile(r'python -m "\$here\.([\w.$]+)"((?:[^\n]*\\\n)*[^\n]*)')
SETTING = re.compile(r"\b([A-Z][A-Z_]+)=")


def test_a_missing_folder_is_named() -> None:
    environment = {name: value for name, value in os.environ.items() if name != "OUT"}
    done = subprocess.run(["bash", str(RECIPE)], env=environment, capture_output=True, text=True)
    assert done.returncode != 0
    assert "OUT: a folder for the results" in done.stderr


def test_an_unknown_half_is_named(tmp_path: Path) -> None:
    environment = {**os.environ, "OUT": str(tmp_path), "HALVES": "talker"}
    done = subprocess.run(["bash", str(RECIPE)], env=environment, capture_output=True, text=True)
    assert done.returncode == 2
    assert "HALVES must be both, thinker, voices or speech, not talker" in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("setting", "part"),
    [("SPEECH_VAE", "VAE"), ("IMAGE_VAE", "VAE"), ("RECOGNISER", "recogniser")],
)
def test_weights_that_are_not_there_are_named(tmp_path: Path, setting: str, part: str) -> None:
    environment = {**os.environ, "OUT": str(tmp_path / "out"), setting: str(tmp_path)}
    done = subprocess.run(["bash", str(RECIPE)], env=environment, capture_output=True, text=True)
    assert done.returncode == 2
    assert f"no weights of a {part} in {tmp_path}" in done.stderr
    assert not list(tmp_path.iterdir())


def test_a_trained_vae_is_taken_without_its_run(tmp_path: Path) -> None:
    text = RECIPE.read_text(encoding="utf-8")
    function = re.search(r"^take_weights\(\).*?^}", text, re.MULTILINE | re.DOTALL)
    assert function
    earlier, ours = tmp_path / "earlier", tmp_path / "ours"
    earlier.mkdir()
    for name in ("vae-1.safetensors", "vae.state", "talker-1.safetensors", "latents.json"):
        (earlier / name).write_text(name)
    command = ["bash", "-euc", f"{function[0]}\ntake_weights {earlier} {ours}"]
    subprocess.run(command, check=True)
    assert {file.name for file in ours.iterdir()} == {"vae-1.safetensors", "latents.json"}


@pytest.mark.parametrize(
    ("settings", "trained"),
    [
        ("VAE_SECONDS=0 ENCODER_SECONDS=5", ["encoder", "encoder_on", "talker"]),
        ("VAE_SECONDS=0 ENCODER_SECONDS=0", ["talker"]),
        ("VAE_SECONDS=9 ENCODER_SECONDS=5", ["decoder", "encoder", "recogniser", "talker", "vae"]),
        ("VAE_SECONDS=9 ENCODER_SECONDS=0 SPEECH_VAE=earlier", ["decoder", "talker"]),
    ],
)
def test_a_talker_learns_with_the_bundled_vae_or_another(
    tmp_path: Path, settings: str, trained: list[str]
) -> None:
    """The function that trains the speaking half, with programs that only write their logs."""
    text = RECIPE.read_text(encoding="utf-8")
    function = re.search(r"^train_speech\(\).*?^}", text, re.MULTILINE | re.DOTALL)
    assert function
    weights = tmp_path / "bundled" / "talker" / "vae" / "model.safetensors"
    weights.parent.mkdir(parents=True)
    weights.write_text("bundled")
    given = "OUT=. TIME=70 HALVES=both SPEECH_GPU=0 SPEECH_VAE= RECOGNISER= RECOGNISER_SECONDS=1"
    fakes = "left() { echo 60; }; train_voices() { :; }; take_weights() { mkdir -p speech; }"
    fakes += "; train_decoder() { : > train_decoder.log; }; recogniser=() VAE=() TALKER=()"
    command = f"{given} bundled=bundled {settings}\n{fakes}\n{function[0]}\ntrain_speech"
    subprocess.run(["bash", "-euc", command], cwd=tmp_path, check=True)
    logs = sorted(log.name for log in tmp_path.glob("train_*.log"))
    assert logs == [f"train_{name}.log" for name in trained]
    kept = tmp_path / "speech" / "vae-1.safetensors"
    assert kept.exists() == ("decoder" not in trained)
    assert not kept.exists() or kept.read_text() == "bundled"


def test_a_thinker_alone_has_nearly_all_of_the_time_and_no_speech() -> None:
    """The lines that share the time out, with other settings."""
    text = RECIPE.read_text(encoding="utf-8")
    first, last = (text.index(line) for line in ("TIME=${", "STEADY_HOURS=${"))
    show = "echo $THINKER_SECONDS $((DRAWING_LEAST > TIME)) $NATURAL_PROCESSES $LOCKED_PROCESSES"

    def shared(**settings: str) -> list[int]:
        environment = {**os.environ, "CORES": "16", "SECONDS_OF_TRAINING": "1200", **settings}
        command = ["bash", "-euc", f"{text[first:last]}\n{show}"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        return [int(one) for one in done.stdout.split()]

    assert shared() == [685, 0, 2, 3]
    assert shared(HALVES="thinker") == [1100, 1, 4, 3]
    assert shared(HALVES="thinker", CORES="2")[2:] == [1, 1]
    # Without a thinker's data, all but four cores make clips.
    assert shared(HALVES="voices") == [0, 0, 0, 11]
    assert shared(HALVES="speech") == [0, 1, 0, 11]


def test_only_what_shares_the_gpu_of_the_clips_uses_mps() -> None:
    text = RECIPE.read_text(encoding="utf-8")
    function = re.search(r"^on_gpu\(\).*?^}", text, re.MULTILINE | re.DOTALL)
    assert function

    def given(gpu: int, pipes: str) -> list[str]:
        settings = f"MPS={pipes} CLIPS_GPU=1"
        command = ["bash", "-euc", f"{settings}\n{function[0]}\non_gpu {gpu}"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()

    assert given(0, "/pipes") == ["CUDA_VISIBLE_DEVICES=0"]
    assert given(1, "/pipes") == ["CUDA_VISIBLE_DEVICES=1", "CUDA_MPS_PIPE_DIRECTORY=/pipes"]
    assert given(1, "") == ["CUDA_VISIBLE_DEVICES=1"]


def commands() -> list[tuple[str, set[str]]]:
    """Every program of the recipe with the options that it is given."""
    found = COMMAND.findall(RECIPE.read_text(encoding="utf-8"))
    return [
        (program, set(OPTION.findall(options)))
        for name, options in found
        for program in (
            ("voices.train_vae", "voices.train_talker") if "$program" in name else (name,)
        )
    ]


def test_every_program_of_the_recipe_is_found() -> None:
    assert {program for program, _ in commands()} == {
        "thinker.spoken_texts",
        "voices.corpus",
        "voices.train_vae",
        "voices.train_talker",
        "export",
        "pack",
    }


@pytest.mark.parametrize(("program", "options"), commands())
def test_programs_have_the_options_of_the_recipe(program: str, options: set[str]) -> None:
    assert options
    assert options <= read_options(f"cookbook.ming_mini_2.{program}")


@pytest.mark.parametrize(
    ("part", "program", "some"),
    [
        ("VAE", "train_vae", {"--budget", "--adversarial-from", "--perceptual"}),
        ("DECODER", "train_vae", {"--adversarial-from", "--peak", "--perceptual"}),
        ("TALKER", "train_talker", {"--start"}),
    ],
)
def test_trainings_of_voices_have_their_default_options(
    part: str, program: str, some: set[str]
) -> None:
    default = re.search(rf'"\$\{{{part}_OPTIONS:-(.*)\}}"', RECIPE.read_text(encoding="utf-8"))
    assert default
    options = set(OPTION.findall(default[1]))
    assert some <= options <= read_options(f"cookbook.ming_mini_2.voices.{program}")


@pytest.mark.parametrize(
    ("part", "begin"),
    [("thinker", r"train_thinker\(?|stored=|read .* THINKER "), ("image", r"learn_to_draw\(?")],
)
def test_parts_have_the_settings_that_they_are_given(part: str, begin: str) -> None:
    """A setting stands in the function that runs a part, where it is called, or in a default."""
    text = RECIPE.read_text(encoding="utf-8")
    places = re.findall(rf"^\s*(?:{begin}).*(?:\n    .*)*", text, re.MULTILINE)
    given = set(SETTING.findall("\n".join(places))) - {"CUDA_VISIBLE_DEVICES"}
    known = (RECIPE.parent / part / "recipe.sh").read_text(encoding="utf-8")
    assert {"OUT", "DATA", "SECONDS_OF_TRAINING"} < given
    assert {name for name in given if f"=${{{name}" not in known} == set()


def test_both_halves_declare_all_that_the_model_can_do(tmp_path: Path) -> None:
    declare(tmp_path, THINKER_ABILITIES)
    declare(tmp_path, speech_abilities())
    found = read_capabilities(tmp_path, RELEASED)
    assert found.name == "Ming-mini"
    assert found.transcription_languages == found.speech_languages == ("en",)
    assert found.translation_prompt is None
    assert found.followed_fields == ("emotion", "style", "speed", "pitch", "volume")
    assert found.voice_cloning
    assert not found.video_sound
    assert not found.image_output
    # Recordings are written down with the prompt of the released model, on which it is trained.
    assert found.transcription_prompt == RELEASED.transcription_prompt


@pytest.mark.parametrize("name", LEAVABLE)
def test_what_is_not_learnt_is_not_declared(tmp_path: Path, name: str) -> None:
    declare(tmp_path, speech_abilities([name]))
    found = read_capabilities(tmp_path, RELEASED)
    assert found.voice_cloning == (name != "cloning")
    assert name not in found.followed_fields
    assert bool(found.followed_fields) == (name != "instructions")
