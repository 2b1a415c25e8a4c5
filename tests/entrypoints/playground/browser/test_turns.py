"""What can be done with a turn of the conversation, in headless Chromium."""

import json
from typing import Any

import numpy as np
import pytest
import soundfile

from sglang_omni.pipeline.request import (
    AudioDelta,
    Finished,
    ReasoningDelta,
    TextDelta,
    ToolCalled,
    TranscriptDelta,
)
from sglang_omni.protocol.errors import InvalidRequest
from sglang_omni.protocol.tools import ToolCall
from tests.entrypoints.http.fake import USAGE, FakeBackend, Served, playing, tone
from tests.testing.browser import Browser, ask, barriers, choose, picture_of

MARKDOWN = """# Mills

A **mill** *grinds* `corn`, see [here](https://example.org) and [not here](javascript:alert(1)).

- water
- wind

```python
print("<b>mill</b>")
```

| kind | power |
|---|---|
| water | 5 kW |

<img src=x onerror=alert(1)>
"""


def answer(page: Any) -> Any:
    return page.locator("#chat-log .answer").last


def finish(page: Any, expect: Any, text: str) -> None:
    """Ask, and wait for the end of the answer."""
    ask(page, text)
    expect(answer(page)).to_have_attribute("aria-busy", "false")


def said(backend: FakeBackend) -> list[str]:
    return [turn.content[0].text for turn in backend.requests[-1].messages]


def test_markdown_is_shown_and_no_html_is_run(page: Any, expect: Any, backend: FakeBackend) -> None:
    backend.script = playing(TextDelta(MARKDOWN), Finished("stop", USAGE))
    finish(page, expect, "What is a mill?")
    shown = answer(page)
    expect(shown.get_by_role("heading", name="Mills")).to_be_visible()
    expect(shown.locator("strong")).to_have_text("mill")
    expect(shown.get_by_role("listitem")).to_have_text(["water", "wind"])
    expect(shown.get_by_role("row")).to_have_text(["kindpower", "water5 kW"])
    expect(shown.locator("pre")).to_have_text('print("<b>mill</b>")')
    expect(shown.get_by_role("link")).to_have_count(1)
    expect(shown.get_by_role("link")).to_have_attribute("rel", "noopener noreferrer")
    expect(shown.locator("img")).to_have_count(0)
    expect(shown).to_contain_text("<img src=x onerror=alert(1)>")
    assert barriers(page) == []
    picture_of(page, "markdown")


def test_a_question_is_written_again(page: Any, expect: Any, backend: FakeBackend) -> None:
    finish(page, expect, "one")
    finish(page, expect, "two")
    page.get_by_role("button", name="Edit").first.click()
    message = page.get_by_label("Message")
    expect(message).to_have_value("one")
    expect(page.locator("#chat-log article")).to_have_count(0)
    finish(page, expect, "three")
    assert said(backend) == ["three"]


def test_an_answer_is_given_again(page: Any, expect: Any, backend: FakeBackend) -> None:
    finish(page, expect, "one")
    backend.script = playing(TextDelta("another"), Finished("stop", USAGE))
    page.get_by_role("button", name="Answer again").click()
    expect(page.locator("#chat-log .answer")).to_have_count(1)
    expect(answer(page)).to_contain_text("another")
    assert said(backend) == ["one"]


def test_an_answer_stays_if_another_is_rejected(
    page: Any, expect: Any, backend: FakeBackend, chromium: Browser
) -> None:
    finish(page, expect, "one")
    backend.script = playing(then=InvalidRequest("not now"))
    page.get_by_role("button", name="Answer again").click()
    expect(page.get_by_role("alert")).to_have_text("not now")
    expect(answer(page)).to_contain_text("one")
    # The browser itself reports every status of 400.
    chromium.complaints.clear()


def test_speech_is_played_again_and_downloaded(
    page: Any, expect: Any, backend: FakeBackend, tmp_path: Any
) -> None:
    backend.script = playing(
        TextDelta("word"), *(AudioDelta(tone()) for _ in range(3)), Finished("stop", USAGE)
    )
    finish(page, expect, "Say a word.")
    with page.expect_download() as download:
        answer(page).get_by_role("button", name="Download").click()
    download.value.save_as(tmp_path / "answer.wav")
    samples, rate = soundfile.read(tmp_path / "answer.wav")
    assert (rate, len(samples)) == (44_100, 3 * len(tone()))
    assert np.abs(samples).max() > 0.01
    answer(page).get_by_role("button", name="Play again").click()
    player = answer(page).locator("audio")
    expect(player).to_have_js_property("duration", len(samples) / rate)


@pytest.mark.parametrize(
    ("language", "line"),
    [
        ("curl", "curl -N {url}/v1/chat/completions \\"),
        ("Python", 'client = OpenAI(base_url="{url}/v1", api_key="none")'),
        ("JavaScript", 'const response = await fetch("{url}/v1/chat/completions", {{'),
    ],
)
def test_a_request_is_shown_as_code(
    page: Any, expect: Any, server: Served, language: str, line: str
) -> None:
    finish(page, expect, "What is a mill?")
    page.get_by_role("button", name="Show as code").click()
    dialog = page.get_by_role("dialog", name="This request as code")
    dialog.get_by_role("button", name=language).click()
    expect(dialog.locator("pre")).to_contain_text(line.format(url=server.url))
    expect(dialog.locator("pre")).to_contain_text("What is a mill?")
    assert barriers(page) == []
    picture_of(page, f"code_{language.lower()}")
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()


def test_the_words_that_are_heard_are_shown(page: Any, expect: Any, backend: FakeBackend) -> None:
    sentence = "One two three four five six seven eight nine ten."
    backend.script = playing(
        TextDelta(sentence),
        TranscriptDelta(sentence),
        *(AudioDelta(tone()) for _ in range(8)),
        Finished("stop", USAGE),
    )
    ask(page, "Count.")
    captions = page.locator("#captions")
    expect(captions).to_have_text(sentence)
    expect(captions.locator("b")).to_contain_text("One two three")
    # It ends with the sound.
    expect(captions).to_be_hidden()


def test_settings_of_sampling_reasoning_and_tools_are_sent(
    page: Any, expect: Any, backend: FakeBackend
) -> None:
    tools = [{"type": "function", "function": {"name": "find_mill", "parameters": {}}}]
    choose(
        page,
        Temperature="0.5",
        Top_p="0.9",
        Top_k="20",
        Let_the_model_reason_before_it_answers=True,
        **{"Tools,_a_JSON_list": json.dumps(tools)},
    )
    call = ToolCall("find_mill", '{"place": "river"}')
    backend.script = playing(
        ReasoningDelta("A mill is at a river."), ToolCalled(call), Finished("stop", USAGE)
    )
    finish(page, expect, "Find a mill.")
    request = backend.requests[-1]
    assert (request.sampling.temperature, request.sampling.top_p, request.sampling.top_k) == (
        *(0.5, 0.9),
        20,
    )
    assert request.thinking
    expect(answer(page).get_by_text("A mill is at a river.")).to_be_hidden()
    answer(page).get_by_text("Reasoning").click()
    expect(answer(page).get_by_text("A mill is at a river.")).to_be_visible()
    expect(answer(page).get_by_role("heading", name="Call of find_mill")).to_be_visible()
    expect(answer(page).locator("pre")).to_have_text(call.arguments)
    assert barriers(page) == []
    picture_of(page, "tool_call")
    backend.script = playing(TextDelta("Behind the bridge."), Finished("stop", USAGE))
    answer(page).get_by_label("Result of the call").fill("behind the bridge")
    page.get_by_role("button", name="Send the result").click()
    expect(answer(page)).to_contain_text("Behind the bridge.")
    assert [turn.role for turn in backend.requests[-1].messages] == ["user", "assistant", "tool"]


def test_tools_that_are_no_list_are_an_error_before_anything_is_sent(
    page: Any, expect: Any, backend: FakeBackend
) -> None:
    choose(page, **{"Tools,_a_JSON_list": "{"})
    ask(page, "hello")
    expect(page.get_by_role("alert")).to_have_text("Tools must be a JSON list.")
    expect(page.get_by_label("Message")).to_have_value("hello")
    assert backend.requests == []


def test_a_server_slower_than_speech_says_so(page: Any, expect: Any, backend: FakeBackend) -> None:
    backend.script = playing(
        TextDelta("slow"),
        *(AudioDelta(tone()) for _ in range(4)),
        Finished("stop", USAGE),
        pause=0.6,
    )
    finish(page, expect, "Speak slowly.")
    expect(page.get_by_text("The server is slower than real time")).to_be_visible()


def test_a_picture_of_the_camera_is_attached(
    page: Any, chromium: Browser, server: Served, expect: Any, backend: FakeBackend
) -> None:
    page.context.grant_permissions(["camera", "microphone"], origin=server.url)
    page.get_by_role("button", name="Take a picture").click()
    expect(page.locator("video.camera")).not_to_have_js_property("videoWidth", 0)
    page.get_by_role("button", name="Take it").click()
    expect(page.locator("#chat-files li")).to_have_text("camera.jpg")
    finish(page, expect, "What is this?")
    assert [part.kind for part in backend.requests[-1].messages[-1].content[:1]] == ["image"]
