"""Conversion between the beta and the GA version of the Realtime protocol.

A client requests the beta version by the header `OpenAI-Beta: realtime=v1` or the subprotocol
`openai-beta.realtime-v1`. In beta the session object is flat, and the events of a response's audio
and text have shorter names. Nothing else differs.
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


def is_beta_requested(headers: Mapping[str, str], subprotocols: Sequence[str]) -> bool:
    """Return whether a client requests the beta version."""
    return HEADER_VALUE in headers.get(HEADER, "") or SUBPROTOCOL in subprotocols


def from_beta(event: JSON) -> JSON:
    """Convert a client's beta event to GA.

    Malformed fields are left as they are; validation rejects them later and names them.
    """
    event = dict(event)
    for name in ("session", "response"):
        if isinstance(event.get(name), dict):
            event[name] = nest_settings(event[name])
    return event


def to_beta(event: JSON) -> Sequence[JSON]:
    """Convert a GA server event to beta. Return one event, or none if beta has no such event."""
    event_type = event["type"]
    if event_type == "conversation.item.done":
        return ()
    beta_event = {**event, "type": EVENT_NAMES.get(event_type, event_type)}
    if "session" in beta_event:
        beta_event["session"] = _flatten_session(beta_event["session"])
    if "response" in beta_event:
        beta_event["response"] = _flatten_response(beta_event["response"])
    if "item" in beta_event:
        beta_event["item"] = _to_beta_item(beta_event["item"])
    return (beta_event,)


def nest_settings(body: JSON) -> JSON:
    """Convert the flat settings of a session or response to nested ones.

    Beta clients had to send a temperature of about 0.8. It is accepted and ignored, because this
    server samples as it is configured.
    """
    body = dict(body)
    body.pop("temperature", None)
    nested: JSON = {}
    modalities = body.pop("modalities", None)
    if modalities is not None:
        nested["output_modalities"] = ["audio"] if "audio" in modalities else ["text"]
    if "max_response_output_tokens" in body:
        nested["max_output_tokens"] = body.pop("max_response_output_tokens")
    audio_input, audio_output = {}, {}
    for old, new in (
        ("input_audio_format", "format"),
        ("input_audio_transcription", "transcription"),
        ("input_audio_noise_reduction", "noise_reduction"),
        ("turn_detection", "turn_detection"),
    ):
        if old in body:
            audio_input[new] = _parse_format(body.pop(old)) if new == "format" else body.pop(old)
    for old, new in (("output_audio_format", "format"), ("voice", "voice"), ("speed", "speed")):
        if old in body:
            audio_output[new] = _parse_format(body.pop(old)) if new == "format" else body.pop(old)
    directions = (("input", audio_input), ("output", audio_output))
    audio = {name: settings for name, settings in directions if settings}
    if audio:
        nested["audio"] = audio
    return {**body, **nested}


def _parse_format(name: object) -> object:
    return {"type": FORMATS.get(name, name)} if isinstance(name, str) else name


def _flatten_session(session: JSON) -> JSON:
    if session["type"] == "transcription":
        return {"id": session["id"], "object": session["object"], **_flatten_input(session)}
    audio_output = session["audio"]["output"]
    unchanged = ("id", "object", "model", "instructions", "tools", "tool_choice")
    return {
        **{name: session[name] for name in unchanged},
        "modalities": _to_beta_modalities(session),
        "voice": audio_output["voice"],
        "speed": audio_output["speed"],
        **_flatten_input(session),
        "output_audio_format": FORMAT_NAMES[audio_output["format"]["type"]],
        "max_response_output_tokens": session["max_output_tokens"],
    }


def _flatten_input(session: JSON) -> JSON:
    audio_input = session["audio"]["input"]
    return {
        "input_audio_format": FORMAT_NAMES[audio_input["format"]["type"]],
        "input_audio_transcription": audio_input["transcription"],
        "turn_detection": audio_input["turn_detection"],
    }


def _flatten_response(response: JSON) -> JSON:
    audio, unchanged = response["audio"]["output"], dict(response)
    for name in ("audio", "output_modalities", "max_output_tokens"):
        del unchanged[name]
    return {
        **unchanged,
        "modalities": _to_beta_modalities(response),
        "voice": audio["voice"],
        "output_audio_format": FORMAT_NAMES[audio["format"]["type"]],
        "max_output_tokens": response["max_output_tokens"],
        "output": [_to_beta_item(item) for item in response["output"]],
    }


def _to_beta_modalities(settings: JSON) -> list[str]:
    return ["text", "audio"] if settings["output_modalities"] == ["audio"] else ["text"]


def _to_beta_item(item: JSON) -> JSON:
    if item["type"] != "message":
        return item
    parts = [
        {**part, "type": PART_NAMES.get(part["type"], part["type"])} for part in item["content"]
    ]
    return {**item, "content": parts}
