"""Messages with media: every form, bound to its message, refused by name when it is wrong."""

from typing import Any

import httpx
import pytest

from sglang_omni.entrypoints.requests.messages import LOW_DETAIL_PIXELS
from sglang_omni.pipeline.request import MediaPart, TextPart
from tests.entrypoints.http.fake import FakeBackend

URL = "https://example.com/a.png"
TEXT = {"type": "text", "text": "What is it?"}
IMAGE = {"type": "image_url", "image_url": {"url": URL}}
PATH = "messages.0.content.0"


def post(http: httpx.Client, *contents: Any, **more: Any) -> httpx.Response:
    messages = [{"role": "user", "content": content} for content in contents]
    body = {"model": FakeBackend.model, "messages": messages, **more}
    return http.post("/v1/chat/completions", json=body)


def sent(http: httpx.Client, backend: FakeBackend, *contents: Any, **more: Any) -> list[Any]:
    reply = post(http, *contents, **more)
    assert reply.status_code == 200, reply.text
    return [message.content for message in backend.requests[-1].messages]


@pytest.mark.parametrize(
    ("raw", "medium"),
    [
        (IMAGE, MediaPart("image", (URL,), f"{PATH}.image_url.url")),
        (
            {"type": "image_url", "image_url": URL},
            MediaPart("image", (URL,), f"{PATH}.image_url.url"),
        ),
        (
            {"type": "image_url", "image_url": {"url": URL, "detail": "low"}},
            MediaPart("image", (URL,), f"{PATH}.image_url.url", LOW_DETAIL_PIXELS),
        ),
        (
            {"type": "input_audio", "input_audio": {"data": "QUJD", "format": "mp3"}},
            MediaPart("audio", ("data:audio/mp3;base64,QUJD",), f"{PATH}.input_audio.data"),
        ),
        (
            {"type": "audio_url", "audio_url": {"url": URL}},
            MediaPart("audio", (URL,), f"{PATH}.audio_url.url"),
        ),
        (
            {"type": "video_url", "video_url": {"url": URL}},
            MediaPart("video", (URL,), f"{PATH}.video_url"),
        ),
        (
            {"type": "video_url", "video_url": {"frames": ["a", "b"]}},
            MediaPart("video", ("a", "b"), f"{PATH}.video_url"),
        ),
    ],
)
def test_every_form_of_a_medium(
    http: httpx.Client, backend: FakeBackend, raw: dict[str, Any], medium: MediaPart
) -> None:
    assert sent(http, backend, [raw]) == [(medium,)]


def test_parts_keep_their_order_and_their_message(http: httpx.Client, backend: FakeBackend) -> None:
    first, second = sent(http, backend, [TEXT, IMAGE, TEXT], [IMAGE, TEXT])
    assert [type(part) for part in first] == [TextPart, MediaPart, TextPart]
    assert first[1].field == "messages.0.content.1.image_url.url"
    assert [type(part) for part in second] == [MediaPart, TextPart]
    assert second[0].field == "messages.1.content.0.image_url.url"


def test_lists_of_the_body_go_to_the_last_message_around_its_text(
    http: httpx.Client, backend: FakeBackend
) -> None:
    lists = {"images": ["i"], "videos": ["v", ["f", "g"]], "audios": ["a"]}
    first, last = sent(http, backend, "one", "two", **lists)
    assert first == (TextPart("one"),)
    assert last == (
        MediaPart("image", ("i",), "images.0"),
        MediaPart("video", ("v",), "videos.0"),
        MediaPart("video", ("f", "g"), "videos.1"),
        TextPart("two"),
        MediaPart("audio", ("a",), "audios.0"),
    )


def test_a_medium_needs_no_text_beside_it(http: httpx.Client) -> None:
    assert post(http, [IMAGE]).status_code == 200
    assert post(http, " ", images=[URL]).status_code == 200


@pytest.mark.parametrize(
    ("part", "param"),
    [
        ({"type": "image", "image": URL}, f"{PATH}.type"),
        ({"image_url": URL}, f"{PATH}.type"),
        ({"type": "image_url"}, f"{PATH}.image_url"),
        ({"type": "image_url", "image_url": ""}, f"{PATH}.image_url.url"),
        ({"type": "image_url", "image_url": {"url": URL, "sharp": 1}}, f"{PATH}.image_url.sharp"),
        ({"type": "video_url", "video_url": {}}, f"{PATH}.video_url"),
        (
            {"type": "video_url", "video_url": {"url": URL, "frames": ["a", "b"]}},
            f"{PATH}.video_url",
        ),
        ({"type": "video_url", "video_url": ["a"]}, f"{PATH}.video_url.frames"),
        ({"type": "input_audio", "input_audio": {"data": "QUJD"}}, f"{PATH}.input_audio.format"),
    ],
)
def test_a_wrong_part_is_refused_by_the_field(
    http: httpx.Client, part: dict[str, Any], param: str
) -> None:
    reply = post(http, [part])
    assert reply.status_code == 400
    assert reply.json()["error"]["param"] == param


def test_only_users_show_media(http: httpx.Client) -> None:
    messages = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": [IMAGE]},
        {"role": "user", "content": "and?"},
    ]
    reply = http.post(
        "/v1/chat/completions", json={"model": FakeBackend.model, "messages": messages}
    )
    assert reply.status_code == 400
    assert reply.json()["error"]["param"] == "messages.1.content"


def test_callers_with_other_credentials_are_other_tenants(
    http: httpx.Client, backend: FakeBackend
) -> None:
    body = {"model": FakeBackend.model, "messages": [{"role": "user", "content": "hi"}]}
    for key in ("one", "two", "one", None):
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        assert http.post("/v1/chat/completions", json=body, headers=headers).status_code == 200
    one, two, again, none = (request.tenant for request in backend.requests[-4:])
    assert one == again
    assert len({one, two, none}) == 3
    assert none is None
    assert "one" not in str(one)
