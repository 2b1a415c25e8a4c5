"""The recogniser learns letters, and its loss tells a clip from others."""

from pathlib import Path

import pytest
import torch

from cookbook.ming_mini import train_ctc_recogniser, train_vae
from cookbook.ming_mini.corpus import Chunk
from cookbook.ming_mini.ctc_recogniser import (
    BLANK,
    CTC_RECOGNISER,
    SAMPLES_A_ROW,
    TIME_MASK,
    USED_BANDS,
    CTCRecogniser,
    decode_best_path,
    decode_letters,
    encode_letters,
    load_ctc_recogniser,
    mask_spectra,
    perceptual_loss,
)
from cookbook.ming_mini.schedule import Rate
from cookbook.ming_mini.vocoder import RATE
from cookbook.ming_mini.weights import save_pieces
from tests.cookbook.test_training import Configs

CPU = torch.device("cpu")


def test_letters_are_spelt_without_punctuation() -> None:
    classes = encode_letters("It's a Twenty-one, is it?")
    assert decode_letters(classes) == "it's a twenty one is it"
    assert BLANK not in classes


def test_repeated_rows_are_one_letter_and_a_blank_parts_two() -> None:
    h, e, el, o = encode_letters("helo")
    assert decode_best_path([BLANK, h, h, e, el, el, BLANK, el, o, o, BLANK]) == "hello"
    assert decode_best_path([]) == ""


@pytest.mark.parametrize("samples", [SAMPLES_A_ROW - 1, 5 * SAMPLES_A_ROW, RATE])
def test_a_row_is_twenty_milliseconds(samples: int) -> None:
    rows, scores = CTCRecogniser(width=16, blocks=2).eval()(torch.randn(2, samples))
    assert scores.shape[1] == 1 + samples // SAMPLES_A_ROW
    assert [one.shape for one in rows] == [(2, scores.shape[1], 16)] * 2


def test_a_batch_has_whole_clips_and_silence_after_them(chunk: Chunk) -> None:
    clips = train_ctc_recogniser.Clips(0.01, CPU, seed=0)
    assert clips.is_empty
    clips.add([chunk])
    found = {}
    for _ in range(20):
        batch = clips.draw(6.0)
        for wave, rows, letters in zip(batch.waveforms, batch.rows, batch.letters, strict=True):
            found[decode_letters(letters)] = wave
            length = int((int(rows) - 1) * SAMPLES_A_ROW)
            assert wave[: length - 1].abs().max() > 0
    assert set(found) == {decode_letters(encode_letters(text)) for text in chunk.texts}
    for index, text in enumerate(chunk.texts):
        clip = torch.from_numpy(chunk.clip(index)).float() / 32767
        wave = found[decode_letters(encode_letters(text))]
        torch.testing.assert_close(wave[: len(clip)], clip)
        assert not wave[len(clip) :].any()


def test_a_clip_that_does_not_fit_with_its_padding_is_left_out(chunk: Chunk) -> None:
    room = len(chunk.samples) / RATE / 3600
    clips = train_ctc_recogniser.Clips(room, CPU, seed=0)
    clips.add([chunk])
    said = {decode_letters(one) for _ in range(30) for one in clips.draw(6.0).letters}
    assert said == {"hi", "good morning", "three red circles"}


def test_the_recogniser_learns(chunk: Chunk) -> None:
    settings = train_ctc_recogniser.Settings(batch_seconds=6.0, rate=Rate(3e-3, 3e-3, 1))
    trainer = train_ctc_recogniser.Trainer(settings, CPU)
    clips = train_ctc_recogniser.Clips(0.01, CPU, seed=0)
    clips.add([chunk])
    losses = [trainer.train(clips.draw(6.0), 0.0) for _ in range(30)]
    assert sum(losses[-5:]) < 0.6 * sum(losses[:5])
    assert trainer.count_errors(clips.draw(6.0)) <= 1


def test_times_and_bands_are_masked_whole_and_most_is_left() -> None:
    torch.manual_seed(3)
    bands = torch.ones(40, USED_BANDS, 157)
    shown = mask_spectra(bands)
    assert shown.shape == bands.shape
    assert set(shown.unique().tolist()) == {0, 1}
    # What remains of a clip is a grid: all bands of some frames, without some of the bands.
    grid = shown.amax(1, keepdim=True) * shown.amax(2, keepdim=True)
    torch.testing.assert_close(shown, grid)
    assert 0.55 < shown.mean() < 0.8
    times = shown.amax(1)[:, : 13 * TIME_MASK].unflatten(1, (13, TIME_MASK))
    torch.testing.assert_close(times.amax(2), times.amin(2))


def test_a_stored_recogniser_scores_the_same(tmp_path: Path) -> None:
    torch.manual_seed(1)
    recogniser = CTCRecogniser().eval()
    save_pieces(recogniser.state_dict(), tmp_path, CTC_RECOGNISER)
    again = load_ctc_recogniser(tmp_path, CPU)
    wave = torch.randn(1, RATE)
    with torch.no_grad():
        torch.testing.assert_close(again(wave)[1], recogniser(wave)[1])
    assert not any(one.requires_grad for one in again.parameters())


def test_the_loss_is_nothing_for_the_sound_itself_and_has_a_gradient_for_others(
    generator: torch.Generator,
) -> None:
    recogniser = CTCRecogniser(width=16, blocks=2).eval().requires_grad_(False)
    real = torch.randn(2, RATE // 2, generator=generator)
    assert perceptual_loss(recogniser, real, real) == 0
    made = (real + 0.3 * torch.randn(real.shape, generator=generator)).requires_grad_()
    near, far = perceptual_loss(recogniser, made, real), perceptual_loss(recogniser, 3 * made, real)
    assert 0 < near < far
    near.backward()
    assert made.grad is not None
    assert made.grad.abs().max() > 0


def test_a_vae_learns_the_perceptual_loss(small_configs: Configs, chunk: Chunk) -> None:
    tape = train_vae.SpeechBuffer(0.01, CPU)
    tape.add([chunk])
    settings = train_vae.Settings(
        batch=2, crop=6, rate=Rate(3e-3, 3e-3, 1), channels=4, adversarial_from=9.0
    )
    torch.manual_seed(2)
    recogniser = CTCRecogniser(width=32, blocks=2).eval().requires_grad_(False)
    trainer = train_vae.Trainer(small_configs[1], settings, tape, CPU, recogniser=recogniser)
    perceptual = [trainer.train(progress=0)["perceptual"].item() for _ in range(12)]
    assert sum(perceptual[-3:]) < 0.8 * sum(perceptual[:3])
