"""The audio encoder gives the released model's states, and clips do not see each other."""

import pytest
import torch
from torch import nn

from sglang_omni.models.ming.encoders.attention import Segments
from sglang_omni.models.ming.encoders.audio import (
    AudioEncoder,
    PackedConvolution,
    count_feature_rows,
    list_window_rows,
)
from sglang_omni.models.ming.encoders.mel import build_mel_filters, compute_log_mel
from sglang_omni.protocol.errors import InvalidRequest
from tests.models.ming.encoders.cases import CLIPS, samples
from tests.testing.golden import assert_close, load_case

CPU = torch.device("cpu")
BATCH_TOLERANCE = 1e-5


@pytest.mark.parametrize("name", CLIPS)
def test_every_state_agrees(name: str, audio: AudioEncoder) -> None:
    case = load_case(name)
    mel = compute_log_mel(samples(case), audio.config.audio.n_mels)
    with torch.inference_mode():
        if "log_mel" in case.tensors:
            case.check("log_mel", mel)
            hidden, lengths = audio.audio.embed(mel, (len(mel),))
            case.check("block0_in", hidden)
            case.check(
                "block0_out", audio.audio.blocks[0](hidden, Segments.from_lengths(lengths, CPU))
            )
            case.check("encoder_out", audio.audio(mel, (len(mel),))[0])
        case.check("features", audio([mel])[0])
    rows = count_feature_rows(len(samples(case)), audio.config.audio)
    assert rows == case["placeholder_count"].item()


def test_packed_clips_are_as_each_alone(audio: AudioEncoder) -> None:
    mels = [torch.randn(length, 128) for length in (37, 1, 100, 64, 2)]
    with torch.inference_mode():
        packed = audio(mels)
        alone = [audio([mel])[0] for mel in mels]
    for one, other in zip(packed, alone, strict=True):
        assert_close(one, other, BATCH_TOLERANCE)


@pytest.mark.parametrize("stride", [1, 2])
def test_a_packed_convolution_is_pytorchs_clip_by_clip(stride: int) -> None:
    convolution = PackedConvolution(5, 7, stride)
    for parameter in convolution.parameters():
        nn.init.normal_(parameter)
    clips = [torch.randn(length, 5) for length in (9, 1, 4, 2)]
    packed, lengths = convolution(torch.cat(clips), tuple(len(clip) for clip in clips))
    plain = [convolution.forward_reference(clip) for clip in clips]
    assert list(lengths) == [len(out) for out in plain]
    assert_close(packed, torch.cat(plain), BATCH_TOLERANCE)


def test_windows_find_zeros_beyond_their_own_clip() -> None:
    assert list_window_rows((2, 3), 2).tolist() == [[5, 0, 1], [5, 2, 3], [3, 4, 5]]


def test_filters_have_equal_area_and_cover_every_bin() -> None:
    filters = build_mel_filters(128, CPU)
    assert filters.shape == (128, 201)
    assert (filters.sum(1) > 0).all()
    # Equal area in Hz; narrow triangles are sampled coarsely, so only the wide ones show it.
    assert_close(filters[-8:].sum(1) * 40.0, torch.ones(8), 0.05)


def test_a_clip_beyond_the_position_table_is_refused(audio: AudioEncoder) -> None:
    longest = audio.config.audio.n_ctx * 2 * 160
    assert count_feature_rows(longest, audio.config.audio) == audio.config.audio.n_ctx // 2
    with pytest.raises(InvalidRequest, match="the maximum is 30 s"):
        count_feature_rows(longest + 160, audio.config.audio)


def test_a_clip_without_a_frame_is_refused(audio: AudioEncoder) -> None:
    with pytest.raises(InvalidRequest, match="the minimum is"):
        count_feature_rows(200, audio.config.audio)
    assert count_feature_rows(201, audio.config.audio) == 1
