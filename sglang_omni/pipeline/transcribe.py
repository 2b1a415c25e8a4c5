"""How the thinker is asked to write down what it hears."""

# As the public examples of the model ask; which wording it hears best was not measured.
INSTRUCTION = "Please recognize the language of this speech and transcribe it. Format: oral."
TOKENS_PER_SECOND = 12
LEAST_TOKENS = 32


def instruction(language: str | None = None, prompt: str | None = None) -> str:
    """What stands before the clip: a known `language`, and a `prompt` with words to expect."""
    hints = [f"The language is {language}."] if language else []
    hints += [prompt] if prompt else []
    return " ".join((INSTRUCTION, *hints))


def token_limit(seconds: float) -> int:
    """The most tokens that what is said in a clip can take."""
    return LEAST_TOKENS + int(seconds * TOKENS_PER_SECOND)
