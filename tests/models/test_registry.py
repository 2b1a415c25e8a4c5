"""From the architecture in a configuration to a family."""

import json
from pathlib import Path

import pytest

from sglang_omni.models.ming.family import FAMILY
from sglang_omni.models.registry import default_family, family_of
from sglang_omni.protocol.errors import CheckpointError
from tests.testing.golden import TINY


def write_config(folder: Path, **fields: object) -> Path:
    (folder / "config.json").write_text(json.dumps(fields))
    return folder


def test_the_tiny_checkpoint_is_of_the_bundled_models_family() -> None:
    assert family_of(TINY) is default_family() is FAMILY


@pytest.mark.parametrize("fields", [{"architectures": ["LlamaForCausalLM"]}, {}])
def test_an_unknown_architecture_is_refused_with_the_known_ones(
    tmp_path: Path, fields: dict[str, object]
) -> None:
    folder = write_config(tmp_path, **fields)
    with pytest.raises(CheckpointError, match=r"known: .*BailingMM2Native") as error:
        family_of(folder)
    assert str(folder / "config.json") in error.value.message


def test_a_folder_without_a_configuration_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"config\.json is missing"):
        family_of(tmp_path)
