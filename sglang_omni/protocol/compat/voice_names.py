"""OpenAI's voices, and which preset of the checkpoint speaks for each."""

from collections.abc import Mapping, Sequence

# In this order: the first is OpenAI's usual default, and so becomes the first preset.
OPENAI_VOICES = (
    *("alloy", "ash", "ballad", "coral", "echo", "fable", "marin"),
    *("cedar", "nova", "onyx", "sage", "shimmer", "verse"),
)


def map_openai_voices(presets: Sequence[str], *, strict: bool = False) -> Mapping[str, str]:
    """Return the preset of each of OpenAI's voices, except those that a preset is named after.

    The presets are dealt out in their order, so that neighbours in the list differ.
    `--strict-names` (`strict`) turns the names off.
    """
    if strict or not presets:
        return {}
    return {
        name: presets[index % len(presets)]
        for index, name in enumerate(OPENAI_VOICES)
        if name not in presets
    }
