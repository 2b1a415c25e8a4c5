"""What a test looks for in a request for images."""

from sglang_omni.pipeline.image_request import ImageRequest
from sglang_omni.pipeline.request import TextPart


def list_texts(request: ImageRequest) -> list[str]:
    """Return the texts of all messages, in order."""
    parts = [part for message in request.messages for part in message.content]
    return [part.text for part in parts if isinstance(part, TextPart)]
