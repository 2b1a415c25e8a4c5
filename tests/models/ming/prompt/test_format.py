"""The chat format as the server uses it: tokens of a chat, and placeholders of media."""

from dataclasses import dataclass

from sglang_omni.models.chat import Item, PromptAudio, PromptImage, PromptVideo
from sglang_omni.models.ming.media_rules import FORMAT
from sglang_omni.models.ming.prompt.chat import render_chat
from sglang_omni.models.ming.prompt.format import MingChatFormat
from sglang_omni.models.ming.prompt.tokenizer import ThinkerTokenizer
from sglang_omni.pipeline.request import TextPart
from sglang_omni.protocol.tools import Tool
from tests.testing.golden import TINY

CHAT = MingChatFormat(TINY)


@dataclass(frozen=True)
class Turn:
    """A message whose media are measured."""

    role: str
    content: tuple[Item, ...]


def test_a_chat_is_tokenized_as_it_is_rendered() -> None:
    messages = [Turn("user", (TextPart("What is there?"),))]
    tools = [Tool("look", "", {})]
    for thinking in (False, True):
        rendered = render_chat(messages, thinking, tools)
        assert CHAT.tokenize(messages, thinking, tools) == ThinkerTokenizer(TINY).encode(rendered)


def test_each_kind_of_media_has_placeholders_of_its_own() -> None:
    image, video = FORMAT.patch_grid((1, 64, 96, 3)), FORMAT.patch_grid((4, 64, 64, 3))
    assert (image, video) == ((1, 4, 6), (2, 4, 4))
    assert (FORMAT.image_tokens(image), FORMAT.image_tokens(video)) == (6, 4)
    assert FORMAT.audio_tokens(16_000) == 25
    media = (PromptImage(6), PromptVideo(4, (0.25, 1.25)), PromptAudio(25))
    prompt = CHAT.tokenize([Turn("user", (*media, TextPart("What is this?")))])
    runs = (prompt.ids[first : last + 1] for first, last in prompt.runs)
    named = [(len(run), {CHAT.token_name(token) for token in run}) for run in runs]
    frames = (4, {"<framePatch>"})
    assert named == [(6, {"<imagePatch>"}), frames, frames, (25, {"<audioPatch>"})]
