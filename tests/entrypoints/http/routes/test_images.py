"""`/v1/images/generations`, `/v1/images/edits` and the files that they name."""

import asyncio
import base64
import io
import json
from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import Any

import httpx
import numpy as np
import openai
import pytest
from PIL import Image

from sglang_omni.config.image_options import ImageOptions
from sglang_omni.media.image_file import GENERATED_SOURCE
from sglang_omni.pipeline.image_request import ImageEvent, ImageRequest, ImageStep
from sglang_omni.pipeline.request import TextPart
from sglang_omni.protocol.errors import EngineFailed, Overloaded
from tests.entrypoints.http.fake import DrawingBackend, FakeBackend, Served, serving
from tests.entrypoints.http.middleware.test_auth import KEY, LOCKED, bearer
from tests.testing.family import CAPABILITIES

GENERATIONS, EDITS = "/v1/images/generations", "/v1/images/edits"
PNG = b"\x89PNG picture"


class PlainBackend(FakeBackend):
    """A fake that draws no images, whatever the family of the tests does."""

    capabilities = replace(CAPABILITIES, image_output=False)


@pytest.fixture
def server(drawing_server: Served) -> Served:
    return drawing_server


def generate(http: httpx.Client, **fields: Any) -> dict[str, Any]:
    reply = http.post(GENERATIONS, json={"prompt": "a mill", **fields})
    assert reply.status_code == 200, reply.text
    answer: dict[str, Any] = reply.json()
    return answer


def asked(backend: FakeBackend) -> ImageRequest:
    request = backend.requests[-1]
    assert isinstance(request, ImageRequest)
    return request


def read(data: bytes) -> Image.Image:
    return Image.open(io.BytesIO(data))


def refusal(http: httpx.Client, url: str = GENERATIONS, **body: Any) -> dict[str, Any]:
    reply = http.post(url, json={"prompt": "a mill", **body})
    error: dict[str, Any] = reply.json()["error"]
    assert reply.status_code == 400, reply.text
    return error


def events_of(text: str) -> list[tuple[str, dict[str, Any]]]:
    """Names and data of server-sent events."""
    blocks = [block.split("\n") for block in text.strip().split("\n\n")]
    return [
        (name.removeprefix("event: "), json.loads(data.removeprefix("data: ")))
        for name, data in blocks
    ]


def test_an_image_comes_as_base64_with_its_seed(http: httpx.Client) -> None:
    answer = generate(http, seed=9)
    (item,) = answer["data"]
    image = read(base64.b64decode(item["b64_json"]))
    assert image.format == "PNG"
    assert np.asarray(image).tolist() == [[[9, 9, 9]] * 4] * 2
    assert item["seed"] == 9
    assert {key: answer[key] for key in ("size", "quality", "background", "output_format")} == {
        "size": "4x2",
        "quality": "medium",
        "background": "opaque",
        "output_format": "png",
    }
    assert answer["usage"] == {
        "input_tokens": 7,
        "input_tokens_details": {"text_tokens": 7, "image_tokens": 0},
        "output_tokens": 8,
        "output_tokens_details": {"text_tokens": 0, "image_tokens": 8},
        "total_tokens": 15,
    }
    assert isinstance(answer["created"], int)


def test_several_images_have_consecutive_seeds(http: httpx.Client, backend: FakeBackend) -> None:
    answer = generate(http, n=3, seed=5)
    assert [item["seed"] for item in answer["data"]] == [5, 6, 7]
    assert answer["usage"]["output_tokens"] == 24
    assert asked(backend).seeds == (5, 6, 7)
    generate(http, n=2, seed=2**63 - 1)
    assert asked(backend).seeds == (2**63 - 1, 0)


def test_a_random_seed_is_chosen_and_told(http: httpx.Client, backend: FakeBackend) -> None:
    seeds = {generate(http)["data"][0]["seed"] for _ in range(3)}
    assert len(seeds) == 3
    assert asked(backend).seeds[0] in seeds


def test_defaults_are_the_servers(http: httpx.Client, backend: FakeBackend) -> None:
    generate(http)
    request = asked(backend)
    assert (request.steps, request.cfg, request.resolution) == (30, 2.0, 1024)
    assert (request.size, request.aspect, request.previews) == (None, None, 0)
    assert request.media == ()


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"quality": "low"}, {"steps": 15}),
        ({"quality": "high"}, {"steps": 50}),
        ({"quality": "hd"}, {"steps": 50}),
        ({"quality": "standard"}, {"steps": 30}),
        ({"quality": "high", "steps": 7}, {"steps": 7}),
        ({"cfg": 5.5}, {"cfg": 5.5}),
        ({"cfg": 0}, {"cfg": 0.0}),
        ({"size": "1024x768"}, {"size": (768, 1024), "resolution": 1024}),
        ({"size": "512x512"}, {"size": (512, 512), "resolution": 512}),
        ({"size": "1080x1920", "resolution": 512}, {"size": (1920, 1080), "resolution": 512}),
        ({"size": "auto", "aspect_ratio": "16:9"}, {"size": None, "aspect": 16 / 9}),
        ({"aspect_ratio": 2}, {"aspect": 2.0}),
        ({"aspect_ratio": "0.5", "resolution": 672}, {"aspect": 0.5, "resolution": 672}),
        ({"priority": "high"}, {"priority": "high"}),
        ({"negative_prompt": "dark"}, {"negative_prompt": "dark"}),
        ({"negative_prompt": " ", "cfg": 1}, {"negative_prompt": None}),
        # Fields of other programs.
        ({"negative": "dark"}, {"negative_prompt": "dark"}),
        ({"num_inference_steps": 12, "guidance_scale": 3.0}, {"steps": 12, "cfg": 3.0}),
        ({"width": 1024, "height": 512}, {"size": (512, 1024)}),
        ({"extra_body": {"seed": 3}}, {"seeds": (3,)}),
    ],
)
def test_fields_say_what_is_drawn(
    http: httpx.Client, backend: FakeBackend, fields: dict[str, Any], expected: dict[str, Any]
) -> None:
    generate(http, **fields)
    request = asked(backend)
    assert {name: getattr(request, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("fields", "param", "words"),
    [
        ({"prompt": " "}, "prompt", "must not be blank"),
        ({"n": 5}, "n", "at most 4 images"),
        ({"n": 11}, "n", "10"),
        ({"size": "big"}, "size", "WIDTHxHEIGHT"),
        ({"size": "5000x10"}, "size", "up to 4096"),
        ({"steps": 101}, "steps", "at most 100"),
        ({"cfg": 21}, "cfg", "20"),
        ({"resolution": 2000}, "resolution", "1024x1024"),
        ({"aspect_ratio": "wide"}, "aspect_ratio", "'16:9'"),
        ({"aspect_ratio": "1:0"}, "aspect_ratio", "'16:9'"),
        ({"size": "512x512", "aspect_ratio": 1}, "aspect_ratio", "size gives the ratio"),
        ({"background": "transparent"}, "background", "transparency is not made"),
        ({"partial_images": 2}, "partial_images", "requires stream"),
        ({"progress": True}, "progress", "requires stream"),
        ({"stream": True, "response_format": "url"}, "response_format", "b64_json"),
        ({"output_compression": 50}, "output_compression", "PNG loses nothing"),
        ({"negative_prompt": "dark", "cfg": 1}, "negative_prompt", "needs a cfg above 1"),
        ({"negative_prompt": 5}, "negative_prompt", "string"),
        ({"width": 512}, "width", "requires height"),
        ({"height": 512}, "height", "requires width"),
        ({"steps": "many"}, "steps", ""),
        ({"colour": "red"}, "colour", "unknown field"),
    ],
)
def test_what_cannot_be_drawn_is_refused_by_name(
    http: httpx.Client, backend: FakeBackend, fields: dict[str, Any], param: str, words: str
) -> None:
    error = refusal(http, **fields)
    assert error["param"] == param
    assert words in error["message"]
    assert backend.requests == []


def test_limits_are_those_of_the_options(
    http: httpx.Client, backend: FakeBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ImageOptions(max_n=1, max_steps=20, steps=15, cfg=4.0, max_resolution=512)
    monkeypatch.setattr(backend, "image_options", options)
    generate(http)
    request = asked(backend)
    assert (request.steps, request.cfg, request.resolution) == (15, 4.0, 512)
    generate(http, quality="high")
    assert asked(backend).steps == 20
    assert refusal(http, n=2)["param"] == "n"
    assert refusal(http, size="1024x1024")["param"] == "size"


def test_fields_without_effect_are_told(http: httpx.Client) -> None:
    body = {"prompt": "a mill", "user": "me", "style": "vivid", "moderation": "low"}
    reply = http.post(GENERATIONS, json=body)
    assert reply.headers["x-ignored-fields"] == "style, user"


@pytest.mark.parametrize("route", [GENERATIONS, EDITS])
def test_a_checkpoint_that_draws_nothing_says_so(
    http: httpx.Client, backend: FakeBackend, route: str
) -> None:
    backend.capabilities = replace(CAPABILITIES, image_output=False, name="Small")
    # Whatever else could be said of the body.
    for body in ({"prompt": "a mill", "images": ["data:,x"]}, {"mask": "data:,x"}, {}):
        reply = http.post(route, json=body)
        assert reply.status_code == 404
        error = reply.json()["error"]
        assert error["code"] == "images_unavailable"
        assert "Small draws no images" in error["message"]
    assert backend.requests == []


@pytest.mark.parametrize(
    ("method", "path"), [("POST", "/v1/images/variations"), ("GET", GENERATIONS)]
)
def test_no_image_route_is_named_where_nothing_is_drawn(method: str, path: str) -> None:
    with serving(backend=PlainBackend()) as served:
        error = httpx.request(method, served.url + path).json()["error"]
    assert error["code"] == "images_unavailable"
    assert "/v1/images" not in error["message"]


def test_the_documentation_has_the_routes_of_a_server_that_draws() -> None:
    documented = {}
    for kind in (DrawingBackend, PlainBackend):
        with serving(backend=kind()) as served:
            schema = httpx.get(f"{served.url}/openapi.json").json()
        documented[kind] = {path for path in schema["paths"] if path.startswith("/v1/images")}
        has_body = "ImageGenerationBody" in schema["components"]["schemas"]
        assert has_body == bool(documented[kind])
    assert documented == {
        DrawingBackend: {GENERATIONS, EDITS, "/v1/images/files/{name}"},
        PlainBackend: set(),
    }


@pytest.mark.parametrize(("name", "quality"), [("jpeg", 80), ("webp", 30)])
def test_other_formats(http: httpx.Client, name: str, quality: int) -> None:
    answer = generate(http, output_format=name, output_compression=quality)
    image = read(base64.b64decode(answer["data"][0]["b64_json"]))
    assert image.format == name.upper()
    assert GENERATED_SOURCE.encode() in image.info["xmp"]
    assert answer["output_format"] == name


def test_a_url_can_be_fetched_without_a_key() -> None:
    with (
        serving(LOCKED, backend=DrawingBackend()) as served,
        httpx.Client(base_url=served.url) as http,
    ):
        body = {"prompt": "a mill", "response_format": "url", "output_format": "webp", "seed": 3}
        assert http.post(GENERATIONS, json=body).status_code == 401
        (item,) = http.post(GENERATIONS, json=body, headers=bearer(KEY)).json()["data"]
        assert item["url"].startswith(f"{served.url}/v1/images/files/")
        assert "b64_json" not in item
        file = http.get(item["url"])
        assert (file.status_code, file.headers["content-type"]) == (200, "image/webp")
        assert read(file.content).size == (4, 2)
        other = http.get("/v1/images/files/unknown.png")
        assert (other.status_code, other.json()["error"]["code"]) == (404, "image_not_found")


def test_a_stream_has_previews_and_the_image(http: httpx.Client) -> None:
    body = {"prompt": "a mill", "stream": True, "partial_images": 2, "seed": 4}
    reply = http.post(GENERATIONS, json=body)
    assert reply.headers["content-type"].startswith("text/event-stream")
    events = events_of(reply.text)
    assert [name for name, _ in events] == [
        "image_generation.partial_image",
        "image_generation.partial_image",
        "image_generation.completed",
    ]
    assert all(name == data["type"] for name, data in events)
    assert [data["partial_image_index"] for _, data in events[:2]] == [0, 1]
    completed = events[-1][1]
    assert np.asarray(read(base64.b64decode(completed["b64_json"])))[0, 0].tolist() == [4, 4, 4]
    assert (completed["seed"], completed["size"]) == (4, "4x2")
    assert completed["usage"]["total_tokens"] == 15


def test_an_error_before_the_first_event_sets_the_status(
    http: httpx.Client, backend: FakeBackend
) -> None:
    async def reject(request: ImageRequest) -> AsyncGenerator[ImageEvent, None]:
        raise Overloaded("the image engine is at capacity")
        yield

    backend.image_script = reject
    for stream in (False, True):
        reply = http.post(GENERATIONS, json={"prompt": "a mill", "stream": stream})
        assert (reply.status_code, reply.json()["error"]["code"]) == (429, "overloaded")
        assert "retry-after" in reply.headers


def test_a_stream_tells_each_step_if_asked(http: httpx.Client, backend: FakeBackend) -> None:
    body = {"prompt": "a mill", "stream": True, "n": 2, "seed": 0}
    events = events_of(http.post(GENERATIONS, json={**body, "progress": True}).text)
    steps = [data for name, data in events if name == "image_generation.progress"]
    assert steps == [
        {"type": "image_generation.progress", "image_index": index, "step": 1, "num_steps": 1}
        for index in range(2)
    ]
    assert "progress" not in http.post(GENERATIONS, json=body).text
    files = {"image": ("a.png", PNG)}
    form = {"prompt": "x", "stream": "true", "progress": "true"}
    names = [name for name, _ in events_of(http.post(EDITS, data=form, files=files).text)]
    assert names == ["image_edit.progress", "image_edit.completed"]


def test_an_engine_that_fails_later_ends_the_stream_with_an_error(
    http: httpx.Client, backend: FakeBackend
) -> None:
    paint = backend.image_script

    async def fail(request: ImageRequest) -> AsyncGenerator[ImageEvent, None]:
        async for event in paint(request):
            yield event
            if not isinstance(event, ImageStep):
                raise EngineFailed("the image engine ended")

    backend.image_script = fail
    body = {"prompt": "a mill", "stream": True, "partial_images": 1}
    last = http.post(GENERATIONS, json=body).text.strip().splitlines()[-1]
    assert json.loads(last.removeprefix("data: "))["error"]["code"] == "engine_failed"
    del body["partial_images"]
    reply = http.post(GENERATIONS, json={**body, "stream": False})
    assert (reply.status_code, reply.json()["error"]["code"]) == (500, "engine_failed")


def test_images_that_are_not_finished_are_an_error(
    http: httpx.Client, backend: FakeBackend
) -> None:
    async def stop(request: ImageRequest) -> AsyncGenerator[ImageEvent, None]:
        yield ImageStep(0, 1, 2)

    backend.image_script = stop
    assert http.post(GENERATIONS, json={"prompt": "a mill"}).status_code == 500


def test_a_client_that_leaves_stops_the_work(http: httpx.Client, backend: FakeBackend) -> None:
    async def never_end(request: ImageRequest) -> AsyncGenerator[ImageEvent, None]:
        yield ImageStep(0, 1, 2)
        await asyncio.Event().wait()

    backend.image_script = never_end
    with pytest.raises(httpx.ReadTimeout):
        http.post(GENERATIONS, json={"prompt": "a mill"}, timeout=0.5)
    backend.wait_running(0)


def test_an_edit_takes_files(http: httpx.Client, backend: FakeBackend) -> None:
    files = [("image[]", ("a.png", PNG, "image/png")), ("image[]", ("b.png", b"2", "image/png"))]
    form = {"prompt": "make it blue", "n": "2", "seed": "3", "cfg": "1.5"}
    reply = http.post(EDITS, data=form, files=files)
    assert reply.status_code == 200, reply.text
    request = asked(backend)
    assert [part.sources for part in request.media] == [(PNG,), (b"2",)]
    assert {part.field for part in request.media} == {"image"}
    assert request.messages[0].content[-1] == TextPart("make it blue")
    assert (request.source, request.seeds, request.cfg) == (0, (3, 4), 1.5)
    assert reply.json()["usage"]["input_tokens_details"]["image_tokens"] == 12


@pytest.mark.parametrize(
    "images",
    [
        {"images": ["data:image/png;base64,AA=="]},
        {"images": [{"image_url": "data:image/png;base64,AA=="}]},
        {"images": [{"image_url": {"url": "data:image/png;base64,AA=="}}]},
        {"image": "data:image/png;base64,AA=="},
        {"image": ["data:image/png;base64,AA=="]},
    ],
)
def test_an_edit_takes_urls_in_json(
    http: httpx.Client, backend: FakeBackend, images: dict[str, Any]
) -> None:
    reply = http.post(EDITS, json={"prompt": "make it blue", "size": "1024x512", **images})
    assert reply.status_code == 200, reply.text
    (part,) = asked(backend).media
    assert (part.sources, part.field) == (("data:image/png;base64,AA==",), "images.0")
    # An edit keeps the ratio of its image, unless another is given.
    assert asked(backend).aspect == 2.0


def test_a_large_body_is_read_too(http: httpx.Client, backend: FakeBackend) -> None:
    source = "data:image/png;base64," + "A" * 200_000
    reply = http.post(EDITS, json={"prompt": "make it blue", "images": [source]})
    assert reply.status_code == 200, reply.text
    assert asked(backend).media[0].sources == (source,)
    assert refusal(http, EDITS, images=[source], colour="red")["param"] == "colour"


def test_edits_refuse_by_name(http: httpx.Client, backend: FakeBackend) -> None:
    files = [("image", ("a.png", PNG, "image/png")), ("mask", ("m.png", PNG, "image/png"))]
    reply = http.post(EDITS, data={"prompt": "x"}, files=files)
    assert (reply.status_code, reply.json()["error"]["param"]) == (400, "mask")
    assert "masks are not taken" in reply.json()["error"]["message"]
    assert refusal(http, EDITS)["param"] == "images"
    assert refusal(http, EDITS, images=[{"file_id": "file-1"}])["param"] == "images.0"
    reply = http.post(EDITS, data={"prompt": "x"}, files={"picture": PNG})
    assert reply.json()["error"]["param"] == "picture"
    reply = http.post(EDITS, files={"image": PNG})
    assert reply.json()["error"]["param"] == "prompt"
    reply = http.post(EDITS, data={"prompt": "x", "n": "many"}, files={"image": PNG})
    assert reply.json()["error"]["param"] == "n"
    assert (
        http.post(EDITS, content=b"{", headers={"content-type": "application/json"}).status_code
        == 400
    )
    assert http.post(EDITS, content=b"x", headers={"content-type": "text/csv"}).status_code == 415
    assert backend.requests == []


def test_openais_client_draws_and_edits(client: openai.OpenAI, backend: FakeBackend) -> None:
    answer = client.images.generate(
        model="gpt-image-1", prompt="a mill", size="1024x1024", quality="low", n=2
    )
    assert answer.data is not None
    assert [bool(item.b64_json) for item in answer.data] == [True, True]
    assert answer.usage is not None
    assert answer.usage.output_tokens == 16
    edited = client.images.edit(
        model="gpt-image-1", image=[("a.png", PNG), ("b.png", PNG)], prompt="make it blue"
    )
    assert edited.data is not None
    assert edited.data[0].b64_json
    assert len(asked(backend).media) == 2


def test_openais_client_reads_the_stream(client: openai.OpenAI) -> None:
    events = list(
        client.images.generate(prompt="a mill", model="gpt-image-1", stream=True, partial_images=1)
    )
    assert [event.type for event in events] == [
        "image_generation.partial_image",
        "image_generation.completed",
    ]
    assert all(event.b64_json for event in events)
    edited = list(
        client.images.edit(image=("a.png", PNG), prompt="x", model="gpt-image-1", stream=True)
    )
    assert [event.type for event in edited] == ["image_edit.completed"]
