"""The protocol as it was spelled before its general availability, to and from today's spelling.

A client asks for it by the header `OpenAI-Beta: realtime=v1` or the subprotocol
`openai-beta.realtime-v1`. The session object was flat then, and the events of a response's audio
and text had shorter names; nothing else differs.
"""

from collections.abc import Mapping, Sequence

from sglang_omni.entrypoints.realtime.items import JSON

HEADER, HEADER_VALUE = "openai-beta", "realtime=v1"
SUBPROTOCOL = "openai-beta.realtime-v1"

EVENT_NAMES = {
    "response.output_audio.delta": "response.audio.delta",
    "response.output_audio.done": "response.audio.done",
    "response.output_audio_transcript.delta": "response.audio_transcript.delta",
    "response.output_audio_transcript.done": "response.audio_transcript.done",
    "response.output_text.delta": "response.text.delta",
    "response.output_text.done": "response.text.done",
    "conversation.item.added": "conversation.item.created",
}
PART_NAMES = {"output_text": "text", "output_audio": "audio"}
FORMATS = {"pcm16": "audio/pcm", "g711_ulaw": "audio/pcmu", "g711_alaw": "audio/pcma"}
FORMAT_NAMES = {coding: name for name, coding in FORMATS.items()}


def asks_for_beta(headers: Mapping[str, str], subprotocols: Sequence[str]) -> bool:
    """Whether a client asks for the older spelling."""
    return HEADER_VALUE in headers.get(HEADER, "") or SUBPROTOCOL in subprotocols


def from_beta(event: JSON) -> JSON:
    """A client's event in today's spelling. What is malformed stays so, to be refused by name."""
    event = dict(event)
    for name in ("session", "response"):
        if isinstance(event.get(name), dict):
            event[name] = _nested(event[name])
    return event


def to_beta(event: JSON) -> Sequence[JSON]:
    """The events that a client of then expects for one of today: one, or none."""
    kind = event["type"]
    if kind == "conversation.item.done":
        return ()
    spelled = {**event, "type": EVENT_NAMES.get(kind, kind)}
    if "session" in spelled:
        spelled["session"] = _flat(spelled["session"])
    if "response" in spelled:
        spelled["response"] = _flat_response(spelled["response"])
    if "item" in spelled:
        spelled["item"] = _old_item(spelled["item"])
    return (spelled,)


def _nested(body: JSON) -> JSON:
    """A flat session, or response, nested. A temperature was required to be about 0.8; the
    server samples as it is configured, and takes it without using it."""
    body = dict(body)
    body.pop("temperature", None)
    nested: JSON = {}
    modalities = body.pop("modalities", None)
    if modalities is not None:
        nested["output_modalities"] = ["audio"] if "audio" in modalities else ["text"]
    if "max_response_output_tokens" in body:
        nested["max_output_tokens"] = body.pop("max_response_output_tokens")
    given, taken = {}, {}
    for old, new in (
        ("input_audio_format", "format"),
        ("input_audio_transcription", "transcription"),
        ("input_audio_noise_reduction", "noise_reduction"),
        ("turn_detection", "turn_detection"),
    ):
        if old in body:
            given[new] = _format(body.pop(old)) if new == "format" else body.pop(old)
    for old, new in (("output_audio_format", "format"), ("voice", "voice"), ("speed", "speed")):
        if old in body:
            taken[new] = _format(body.pop(old)) if new == "format" else body.pop(old)
    audio = {name: part for name, part in (("input", given), ("output", taken)) if part}
    if audio:
        nested["audio"] = audio
    return {**body, **nested}


def _format(name: object) -> object:
    return {"type": FORMATS.get(name, name)} if isinstance(name, str) else name


def _flat(session: JSON) -> JSON:
    given, taken = session["audio"]["input"], session["audio"]["output"]
    kept = ("id", "object", "model", "instructions", "tools", "tool_choice")
    return {
        **{name: session[name] for name in kept},
        "modalities": _modalities(session),
        "voice": taken["voice"],
        "speed": taken["speed"],
        "input_audio_format": FORMAT_NAMES[given["format"]["type"]],
        "output_audio_format": FORMAT_NAMES[taken["format"]["type"]],
        "input_audio_transcription": given["transcription"],
        "turn_detection": given["turn_detection"],
        "max_response_output_tokens": session["max_output_tokens"],
    }


def _flat_response(response: JSON) -> JSON:
    audio, kept = response["audio"]["output"], dict(response)
    for name in ("audio", "output_modalities", "max_output_tokens"):
        del kept[name]
    return {
        **kept,
        "modalities": _modalities(response),
        "voice": audio["voice"],
        "output_audio_format": FORMAT_NAMES[audio["format"]["type"]],
        "max_output_tokens": response["max_output_tokens"],
        "output": [_old_item(item) for item in response["output"]],
    }


def _modalities(answers: JSON) -> list[str]:
    return ["text", "audio"] if answers["output_modalities"] == ["audio"] else ["text"]


def _old_item(item: JSON) -> JSON:
    if item["type"] != "message":
        return item
    parts = [
        {**part, "type": PART_NAMES.get(part["type"], part["type"])} for part in item["content"]
    ]
    return {**item, "content": parts}
