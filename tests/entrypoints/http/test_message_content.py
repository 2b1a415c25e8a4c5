"""Messages with media: every form, bound to its message, refused by name when it is wrong."""

from dataclasses import replace
from typing import Any

import httpx
import pytest

from sglang_omni.entrypoints.requests.messages import LOW_DETAIL_PIXELS
from sglang_omni.media.limits import VideoOptions
from sglang_omni.pipeline.request import MediaPart, TextPart
from tests.entrypoints.http.fake import FakeBackend
from tests.testing.family import CAPABILITIES

URL = "https://example.com/a.png"
TEXT = {"type": "text", "text": "What is it?"}
IMAGE = {"type": "image_url", "image_url": {"url": URL}}
PATH = "messages.0.content.0"
SEEN = VideoOptions(sound="optional" if CAPABILITIES.video_sound else "off")
HEARING = replace(CAPABILITIES, video_sound=True)
DEAF = replace(CAPABILITIES, name="Deaf", video_sound=False)


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
            MediaPart("video", (URL,), f"{PATH}.video_url", video=SEEN),
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
        MediaPart("video", ("v",), "videos.0", video=SEEN),
        MediaPart("video", ("f", "g"), "videos.1"),
        TextPart("two"),
        MediaPart("audio", ("a",), "audios.0"),
    )


VIDEO = {"type": "video_url", "video_url": {"url": "v"}}
OPTIONS: list[tuple[dict[str, Any], dict[str, Any], VideoOptions]] = [
    ({}, VIDEO, VideoOptions(sound="optional")),
    ({"use_audio_in_video": None}, VIDEO, VideoOptions(sound="optional")),
    ({"use_audio_in_video": True}, VIDEO, VideoOptions(sound="required")),
    ({"use_audio_in_video": False}, VIDEO, VideoOptions(sound="off")),
    ({"video_fps": 4, "video_max_frames": 9}, VIDEO, VideoOptions(4, 9, "optional")),
    (
        {"video_fps": 4, "video_max_frames": 9},
        {"type": "video_url", "video_url": {"url": "v", "fps": 0.5}},
        VideoOptions(0.5, 9, "optional"),
    ),
    (
        {"mm_processor_kwargs": {"use_audio_in_video": False, "fps": 3, "num_frames": 7}},
        VIDEO,
        VideoOptions(3, 7, "off"),
    ),
    (
        {"video_fps": 4, "mm_processor_kwargs": {"fps": 3, "max_frames": 7}},
        VIDEO,
        VideoOptions(4, 7, "optional"),
    ),
    (
        {"media_io_kwargs": {"video": {"fps": 3, "num_frames": -1}}},
        VIDEO,
        VideoOptions(3, None, "optional"),
    ),
    (
        {},
        {"type": "video", "video": "v", "fps": 1.5, "nframes": 6},
        VideoOptions(1.5, 6, "optional"),
    ),
]


@pytest.mark.parametrize(("fields", "part", "options"), OPTIONS, ids=str)
def test_the_options_of_videos_reach_the_pipeline(
    http: httpx.Client,
    backend: FakeBackend,
    fields: dict[str, Any],
    part: dict[str, Any],
    options: VideoOptions,
) -> None:
    backend.capabilities = HEARING
    reply = post(http, [part, TEXT], **fields)
    assert reply.status_code == 200, reply.text
    assert "x-ignored-fields" not in reply.headers
    (seen, _) = backend.requests[-1].messages[0].content
    assert (seen.sources, seen.video) == (("v",), options)


def test_listed_frames_have_no_options_but_their_own_rate(
    http: httpx.Client, backend: FakeBackend
) -> None:
    backend.capabilities = HEARING
    frames = {"type": "video_url", "video_url": ["a", "b"]}
    ((seen,),) = sent(http, backend, [frames], video_fps=9, video_max_frames=1)
    assert seen.video == VideoOptions()
    ((seen,),) = sent(http, backend, [{"type": "video", "video": ["a", "b"], "fps": 4}])
    assert (seen.sources, seen.video) == (("a", "b"), VideoOptions(fps=4))


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"video_fps": 0}, "video_fps"),
        ({"video_fps": 61}, "video_fps"),
        ({"video_fps": "2"}, "video_fps"),
        ({"video_max_frames": 0}, "video_max_frames"),
        ({"video_max_frames": 2.5}, "video_max_frames"),
        ({"use_audio_in_video": "yes"}, "use_audio_in_video"),
        ({"mm_processor_kwargs": []}, "mm_processor_kwargs"),
        ({"mm_processor_kwargs": {"fps": [2]}}, "mm_processor_kwargs.fps"),
        ({"mm_processor_kwargs": {"num_frames": True}}, "mm_processor_kwargs.num_frames"),
        ({"media_io_kwargs": 1}, "media_io_kwargs"),
        ({"media_io_kwargs": {"video": 1}}, "media_io_kwargs.video"),
        ({"media_io_kwargs": {"video": {"fps": "2"}}}, "media_io_kwargs.video.fps"),
        ({"videos": [{"frames": ["a", "b"], "max_frames": 1}]}, "videos.0"),
        ({"videos": [{"url": "a", "max_frames": 0}]}, "videos.0.max_frames"),
    ],
    ids=str,
)
def test_a_wrong_option_of_videos_is_refused_by_name(
    http: httpx.Client, fields: dict[str, Any], param: str
) -> None:
    reply = post(http, [TEXT], **fields)
    assert reply.status_code == 400
    assert reply.json()["error"]["param"] == param


def test_options_that_nothing_is_known_of_are_told(http: httpx.Client) -> None:
    fields = {
        "mm_processor_kwargs": {"fps": 2, "size": 9},
        "media_io_kwargs": {"audio": {"sr": 1}, "video": {"backend": "x"}},
        "messages": [{"role": "user", "content": [{**IMAGE, "fps": 1}, TEXT]}],
    }
    reply = http.post("/v1/chat/completions", json={"model": FakeBackend.model, **fields})
    assert reply.headers["x-ignored-fields"] == (
        "media_io_kwargs.audio, media_io_kwargs.video.backend, messages.content.fps, "
        "mm_processor_kwargs.size"
    )


def test_a_model_that_does_not_hear_videos_sees_them_only(
    http: httpx.Client, backend: FakeBackend
) -> None:
    backend.capabilities = DEAF
    for fields in ({}, {"use_audio_in_video": False}):
        ((seen,),) = sent(http, backend, [VIDEO], **fields)
        assert seen.video.sound == "off"
    error = post(http, [VIDEO], use_audio_in_video=True).json()["error"]
    assert error["param"] == "use_audio_in_video"
    assert "Deaf does not hear" in error["message"]


def test_a_medium_needs_no_text_beside_it(http: httpx.Client) -> None:
    assert post(http, [IMAGE]).status_code == 200
    assert post(http, " ", images=[URL]).status_code == 200


@pytest.mark.parametrize(
    ("part", "param"),
    [
        ({"type": "picture", "picture": URL}, f"{PATH}.type"),
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


@pytest.mark.parametrize(
    "message",
    [
        {"role": "system", "content": [IMAGE]},
        {
            "role": "assistant",
            "content": [{"type": "audio_url", "audio_url": {"url": "http://a/b"}}],
        },
    ],
)
def test_only_users_show_media(http: httpx.Client, message: dict[str, Any]) -> None:
    messages = [{"role": "user", "content": "hi"}, message, {"role": "user", "content": "and?"}]
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
