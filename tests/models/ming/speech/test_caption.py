"""The caption of the instruct mode, byte for byte as the model was trained to read it."""

import json

import pytest

from sglang_omni.models.ming.speech.caption import Caption, render_caption

EMPTY = (
    '{"audio_sequence": [{"序号": 1, "说话人": "speaker_1", "方言": null, "风格": null, '
    '"语速": null, "基频": null, "音量": null, "情感": null, "BGM": {"Genre": null, "Mood": null, '
    '"Instrument": null, "Theme": null, "ENV": null, "SNR": null}, "IP": null}]}'
)


def test_every_key_stands_in_its_place_whatever_is_said() -> None:
    assert render_caption(Caption()) == EMPTY


@pytest.mark.parametrize(
    ("caption", "key", "value"),
    [
        (Caption(emotion="happy"), "情感", "高兴"),
        (Caption(emotion="悲伤"), "情感", "悲伤"),
        (Caption(dialect="Cantonese"), "方言", "广粤话"),
        (Caption(speed="slow"), "语速", "慢速"),
        (Caption(pitch="high"), "基频", "高"),
        (Caption(volume="low"), "音量", "低"),
        (Caption(style="Like a newsreader."), "风格", "Like a newsreader."),
    ],
)
def test_a_field_is_said_in_the_models_own_words(caption: Caption, key: str, value: str) -> None:
    (entry,) = json.loads(render_caption(caption))["audio_sequence"]
    (empty,) = json.loads(EMPTY)["audio_sequence"]
    assert entry == {**empty, key: value}
