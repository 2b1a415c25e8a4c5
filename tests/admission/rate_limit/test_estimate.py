"""Tokens to reserve follow from what a request may speak."""

from sglang_omni.admission.rate_limit.estimate import estimate_speech_tokens
from sglang_omni.pipeline.request import SpeechRequest, SpeechTurn, Voice

VOICE = Voice("a", 1)


def test_turns_count_together() -> None:
    text = "Twenty letters here."
    alone = estimate_speech_tokens(SpeechRequest("1", text, VOICE), 0.32)
    turns = (SpeechTurn(text, VOICE), SpeechTurn(text, VOICE))
    together = SpeechRequest("1", text, VOICE, later_turns=turns)
    assert estimate_speech_tokens(together, 0.32) == 3 * alone > 0
