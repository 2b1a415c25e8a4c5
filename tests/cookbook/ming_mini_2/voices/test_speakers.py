"""Six presets, many variants of which some are held out, and takes that belong together."""

from itertools import islice

import pytest

from cookbook.ming_mini.lexicon import Lexicon
from cookbook.ming_mini_2.capabilities import SPEECH_ABILITIES
from cookbook.ming_mini_2.voices.jobs import draw_jobs, unchanged_jobs
from cookbook.ming_mini_2.voices.manner import controls_of
from cookbook.ming_mini_2.voices.melody import SAME_MELODY
from cookbook.ming_mini_2.voices.pack import PROMPTS
from cookbook.ming_mini_2.voices.speakers import (
    PRESETS,
    all_variants,
    held_out_speakers,
    natural_sources,
    training_speakers,
)
from cookbook.ming_mini_2.voices.synthesize import SpeechJob
from cookbook.ming_mini_2.voices.texts import draw_texts, is_reserved
from measurement.everyday_sentences import sample_sentences
from sglang_omni.models.ming.text.marks import write_in_marks

pytest.importorskip("chatterbot_corpus", reason="its sentences are kept for the evaluation")

HELD_OUT = [
    "joe+3",
    "gongitsune-2.5",
    "nezumi+1.5",
    "kumo-4",
    "alpha-gongitsune-1",
    "alpha-nezumi+3",
    "alpha-kumo-4",
    "gongitsune-nezumi-1",
    "gongitsune-tebukuro+3",
    "nezumi-tebukuro+0",
]


@pytest.fixture
def jobs(lexicon: Lexicon) -> list[SpeechJob]:
    return list(islice(draw_jobs(1, lexicon, training_speakers()), 600))


def test_names_are_unique_and_presets_have_a_source_of_their_own() -> None:
    names = [speaker.name for speaker in (*PRESETS, *all_variants())]
    assert len(set(names)) == len(names)
    assert len({speaker.source for speaker in PRESETS}) == len(PRESETS) == 6
    assert list(PROMPTS) == [speaker.name for speaker in PRESETS]


def test_held_out_speakers_are_natural_and_not_trained_on() -> None:
    held = held_out_speakers()
    assert len(held) == 10
    assert not set(held) & set(training_speakers())
    assert {speaker.source.teacher for speaker in held} == {"piper", "kokoro"}


def test_more_mixes_leave_the_same_speakers_held_out() -> None:
    """Results of clones are of the same voices as before there were uneven mixes."""
    assert [speaker.name for speaker in held_out_speakers()] == HELD_OUT
    mixes = [one.mix for one in natural_sources() if one.mix]
    assert len(set(mixes)) == len(mixes) == 5 + 10 + 20 + 10
    assert all(sum(share for _, share in mix) == pytest.approx(1) for mix in mixes)


def test_takes_of_a_job_share_source_and_speed(jobs: list[SpeechJob]) -> None:
    for job in jobs:
        assert len({take.speaker.source for take in job.takes}) == 1
        assert len({controls_of(take.manner).pace for take in job.takes}) == 1
        assert all(take.manner.is_neutral == (not take.instruction) for take in job.takes)


def test_every_preset_and_every_teacher_speaks_and_some_follow_instructions(
    jobs: list[SpeechJob],
) -> None:
    takes = [take for job in jobs for take in job.takes]
    assert {take.speaker.source.teacher for take in takes} == {"piper", "kokoro", "formant"}
    assert {speaker.name for speaker in PRESETS} <= {take.speaker.name for take in takes}
    assert 0.1 < sum(bool(take.instruction) for take in takes) / len(takes) < 0.6


def test_the_default_voice_speaks_most_of_the_presets(jobs: list[SpeechJob]) -> None:
    first = [job.takes[0].speaker for job in jobs]
    counts = [first.count(speaker) for speaker in PRESETS]
    assert counts[0] > 2 * max(counts[1:])


def test_other_seeds_have_other_texts(lexicon: Lexicon) -> None:
    one, other = (list(islice(draw_texts(seed, lexicon), 20)) for seed in (1, 2))
    assert one == list(islice(draw_texts(1, lexicon), 20))
    assert one != other


def test_sentences_of_the_evaluation_are_left_out(lexicon: Lexicon) -> None:
    (sentence,) = sample_sentences(1, 1)
    assert is_reserved(sentence.upper())
    assert not is_reserved("The garden is behind the house of my brother.")
    assert not any(is_reserved(text) for text in islice(draw_texts(5, lexicon), 500))


def test_texts_have_the_marks_that_the_model_declares(lexicon: Lexicon) -> None:
    known = str(SPEECH_ABILITIES["speech_marks"])
    drawn = draw_texts(5, lexicon, frequent=("awesome", "we've"))
    texts = [*islice(drawn, 1000), *PROMPTS.values()]
    assert [text for text in texts if write_in_marks(text, known) != text] == []


def test_given_texts_are_said_besides_but_no_sentence_of_the_evaluation(lexicon: Lexicon) -> None:
    reserved = sample_sentences(1, 1)[0]
    jobs = draw_jobs(1, lexicon, training_speakers(), given=("What is two and two?", reserved))
    said = [job.text for job in islice(jobs, 200)]
    assert 80 < said.count("What is two and two?") < 160
    assert reserved not in said


def test_unchanged_jobs_keep_only_takes_of_the_teachers_own_voice(jobs: list[SpeechJob]) -> None:
    kept = list(unchanged_jobs(iter(jobs)))
    takes = [take for job in kept for take in job.takes]
    assert 0 < len(kept) < len(jobs)
    assert {(take.speaker.semitones, take.speaker.size) for take in takes} == {(0.0, 1.0)}
    assert all(controls_of(take.manner).melody == SAME_MELODY for take in takes)
