"""What the counters of engines count, and which of them go up and down."""

from dataclasses import dataclass


@dataclass(frozen=True)
class EngineCounter:
    """A counter of an engine: its help text, and whether it goes up and down."""

    text: str
    is_gauge: bool = False


_CACHES = {
    f"{kind}_cache_{name}": counter
    for kind, media in (("image", "images and frames"), ("audio", "audio clips"))
    for name, counter in {
        "entries": EngineCounter(f"Encoded {media} that the cache holds", True),
        "bytes": EngineCounter(f"Bytes of encoded {media} that the cache holds", True),
        "hits": EngineCounter(f"Encodings of {media} taken from the cache"),
        "misses": EngineCounter(f"Encodings of {media} that the cache did not hold"),
        "evictions": EngineCounter(f"Encoded {media} that made room for others in the cache"),
        "joined": EngineCounter(
            f"Encodings of {media} shared with a request that was being served"
        ),
    }.items()
}
ENGINE_COUNTERS = {
    "active_slots": EngineCounter("Voices that are speaking", True),
    "waiting": EngineCounter("Requests that the engine has and has not begun", True),
    "running": EngineCounter("Requests that the engine is working on", True),
    "admitted": EngineCounter("Requests that have a place in the engine", True),
    "queued": EngineCounter("Requests that wait for a place in the engine", True),
    "rejected": EngineCounter("Requests refused with 429 because the queue was full or too slow"),
    "kv_tokens_used": EngineCounter(
        "Tokens in the thinker's KV cache, without reusable ones", True
    ),
    "kv_tokens_capacity": EngineCounter("Tokens that the thinker's KV cache can hold", True),
    "kv_tokens_requested": EngineCounter("Tokens in the KV cache and of waiting prompts", True),
    "waiting_tokens": EngineCounter("Tokens of waiting prompts that are not cached", True),
    "tokens_per_second": EngineCounter("Tokens that the thinker generates in a second", True),
    "cache_hit_rate": EngineCounter("Share of prompt tokens that were in the KV cache", True),
    "aborted": EngineCounter("Requests that were cancelled, or whose client left"),
    "finished": EngineCounter("Requests that the engine completed"),
    "request_errors": EngineCounter("Requests that the engine refused"),
    "steps": EngineCounter("Steps of the engine"),
    "step_seconds": EngineCounter("Seconds spent in steps"),
    "busy_seconds": EngineCounter("Seconds spent in computing"),
    "rested_seconds": EngineCounter("Seconds in which images gave way to answers"),
    "image_steps": EngineCounter("Steps of all images: a step of four images at once is four"),
    "patches": EngineCounter("Patches of speech, each a fraction of a second of one voice"),
    "audio_seconds": EngineCounter("Seconds of generated audio"),
    "overloaded": EngineCounter("Requests refused with 429 because other speech would stall"),
    "voices_made": EngineCounter("Voices made of recordings"),
    "images": EngineCounter("Encoded images"),
    "frames": EngineCounter("Encoded frames of videos"),
    "audio_clips": EngineCounter("Encoded audio clips"),
    "batches": EngineCounter("Batches that were encoded"),
    "gpu_peak_bytes": EngineCounter("Most bytes of GPU memory that PyTorch reserved", True),
    "decoded": EngineCounter("Decoded files"),
    "checked": EngineCounter("Checked grammars"),
    **_CACHES,
}
"""The counters by their names; a counter that ends in no unit counts things."""


def describe_counter(name: str) -> EngineCounter:
    """Return what a counter counts. Engines of other families may have counters of their own."""
    return ENGINE_COUNTERS.get(name) or EngineCounter(
        f"{name.replace('_', ' ')}, as the engine counts"
    )
