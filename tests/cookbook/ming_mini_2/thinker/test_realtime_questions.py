"""Questions of clips are asked in sessions of their own, and the transcripts are judged."""

import numpy as np

from cookbook.ming_mini.thinker.items import Item
from cookbook.ming_mini_2.thinker.evaluation.realtime_questions import TASK, ask_all
from cookbook.ming_mini_2.thinker.evaluation.suite import Question, report
from sglang_omni.pipeline.request import AudioDelta, Finished, TranscriptDelta, Usage
from tests.entrypoints.http.fake import playing, serving, tone
from tests.entrypoints.realtime import sounds


async def test_a_transcript_is_right_or_wrong() -> None:
    clip = (32767 * sounds.voice(0.6, 16_000)).astype(np.int16)
    asked = [
        Question(TASK, Item(TASK, "", answer, "exact", speech="Is it?"), clip)
        for answer in ("Yes.", "No.")
    ]
    with serving() as server:
        server.backend.script = playing(
            TranscriptDelta("Yes."), AudioDelta(tone()), Finished("stop", Usage())
        )
        answers = await ask_all(server.url.replace("http", "ws"), asked, at_once=2)
    assert [one.is_right for one in answers] == [True, False]
    assert report(answers)[TASK]["accuracy"] == 0.5
