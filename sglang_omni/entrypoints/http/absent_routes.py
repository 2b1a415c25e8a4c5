"""Routes of OpenAI and of other servers that this server has not, and what it has instead."""

from dataclasses import dataclass

CHAT = "POST /v1/chat/completions"
RESPONSES = "POST /v1/responses"
SPEECH = "POST /v1/audio/speech"
TRANSCRIPTION = "POST /v1/audio/transcriptions"
VOICES = "POST /v1/audio/voices"
NORMALIZATION = "POST /v1/audio/normalize"
MODELS = "GET /v1/models"
IMAGES = ("POST /v1/images/generations", "POST /v1/images/edits")


@dataclass(frozen=True)
class AbsentRoute:
    """A route that clients may ask for.

    Attributes:
        path: The route; routes below it count too.
        reason: What this server does not do.
        instead: The routes that it has instead.
    """

    path: str
    reason: str
    instead: tuple[str, ...] = (CHAT,)


ABSENT_ROUTES = (
    AbsentRoute("/v1/embeddings", "this model makes no embeddings"),
    AbsentRoute("/v1/rerank", "this model does not rank documents"),
    AbsentRoute("/rerank", "this model does not rank documents"),
    AbsentRoute("/v1/score", "this model does not score pairs of texts", ("POST /v1/completions",)),
    AbsentRoute("/v1/classify", "this model does not classify texts"),
    AbsentRoute("/v1/moderations", "this model does not moderate; a chat can be asked to"),
    AbsentRoute("/v1/images", "images are drawn or edited by other routes", IMAGES),
    AbsentRoute("/v1/videos", "videos are not made; a chat understands them"),
    AbsentRoute("/v1/files", "no files are stored; requests carry their media", (CHAT, VOICES)),
    AbsentRoute("/v1/uploads", "no files are stored; requests carry their media", (CHAT, VOICES)),
    AbsentRoute("/v1/batches", "there are no batches of files", (f"{SPEECH}/batch", CHAT)),
    AbsentRoute("/v1/fine_tuning", "models are not trained", (MODELS, VOICES)),
    AbsentRoute("/v1/vector_stores", "no documents are stored or searched"),
    AbsentRoute("/v1/assistants", "no assistants are stored", (RESPONSES,)),
    AbsentRoute("/v1/threads", "conversations are stored as responses", (RESPONSES,)),
    AbsentRoute("/v1/conversations", "conversations are stored as responses", (RESPONSES,)),
    AbsentRoute("/v1/chat/completions", "no chats are stored", (RESPONSES,)),
    AbsentRoute("/v1/evals", "models are not evaluated"),
    AbsentRoute("/v1/containers", "no code is run"),
    AbsentRoute(
        "/v1/realtime",
        "a session needs no client secret; connect with an API key",
        ("WS /v1/realtime",),
    ),
    AbsentRoute("/v1/messages", "Anthropic's API is not served"),
    AbsentRoute("/generate", "SGLang's own API is not served", ("POST /v1/completions", CHAT)),
    AbsentRoute("/api", "Ollama's API is not served", (MODELS, CHAT)),
    AbsentRoute(
        "/v1/audio",
        "there are other routes for sound",
        (SPEECH, TRANSCRIPTION, NORMALIZATION),
    ),
)


def find_absent_route(path: str) -> str | None:
    """Return what to say of a path that is not served, None if nothing is known of it."""
    for absent in ABSENT_ROUTES:
        if path == absent.path or path.startswith(f"{absent.path}/"):
            return f"{absent.reason}; this server has {', '.join(absent.instead)}"
    return None
