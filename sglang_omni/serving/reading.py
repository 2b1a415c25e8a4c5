"""How the server reads text aloud, by its configuration."""

from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from sglang_omni.config.text_options import TextOptions
from sglang_omni.models.speech_text import ReadingOptions
from sglang_omni.protocol.errors import ConfigError
from sglang_omni.protocol.speech import Lexicon

_LEXICON: TypeAdapter[Lexicon] = TypeAdapter(Lexicon)


def build_reading(options: TextOptions) -> ReadingOptions:
    """Return the default of all requests. Raises `ConfigError` for a lexicon that is unusable."""
    lexicon = read_lexicon(options.lexicon) if options.lexicon else {}
    return ReadingOptions(options.front_end, lexicon=lexicon)


def read_lexicon(path: Path, option: str = "text.lexicon") -> dict[str, str]:
    """Read a lexicon: a JSON object of written words and pronunciations.

    Args:
        path: The file.
        option: The option that names it, for messages.

    Raises:
        ConfigError: The file cannot be read or has another form.
    """
    try:
        return _LEXICON.validate_json(path.read_bytes(), strict=True)
    except OSError as error:
        problem = str(error)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        problem = f"{place}: {first['msg']}" if place else first["msg"]
    raise ConfigError(f"{option}: {path}: {problem}", param=option)
