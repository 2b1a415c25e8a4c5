"""English text as phonemes in the IPA, by espeak-ng's rules and dictionary.

The library and its data come with the package `espeakng-loader`; no program is run. Punctuation
is kept, since the teachers take the melody of a sentence from it.
"""

import ctypes
import re
from functools import cache

VOICE = "en-us"
_UTF8, _IPA = 1, 2
_NO_AUDIO = 2
_CLAUSE = re.compile(r"\s*([,.;:!?]+)\s*")


class PhonemesError(RuntimeError):
    """The library cannot be used, or the text has no phonemes."""


def to_phonemes(text: str) -> str:
    """Return the IPA of a text. Of its marks every clause keeps one, or gets a full stop.

    Raises:
        PhonemesError: The text has nothing to say.
    """
    parts = _CLAUSE.split(text.strip())
    spoken = ""
    for clause, marks in zip(parts[::2], (*parts[1::2], ""), strict=True):
        if sounds := _clause_phonemes(clause):
            spoken += f"{' ' if spoken else ''}{sounds}{marks[:1] or '.'}"
    if not spoken:
        raise PhonemesError("the text has nothing to say")
    return spoken


def _clause_phonemes(clause: str) -> str:
    """Return the phonemes of a clause without marks, which the library may still cut in parts."""
    library = _library()
    buffer = ctypes.create_string_buffer(clause.encode())
    text = ctypes.c_void_p(ctypes.addressof(buffer))
    found = []
    while text.value:
        raw = library.espeak_TextToPhonemes(ctypes.byref(text), _UTF8, _IPA)
        if raw:
            found.append(raw.decode())
    return " ".join(filter(None, (part.strip() for part in found)))


@cache
def _library() -> ctypes.CDLL:
    """Load the library once in a process. Raises `PhonemesError`."""
    import espeakng_loader

    library = ctypes.CDLL(espeakng_loader.get_library_path())
    library.espeak_TextToPhonemes.restype = ctypes.c_char_p
    library.espeak_TextToPhonemes.argtypes = (ctypes.c_void_p, ctypes.c_int, ctypes.c_int)
    data = espeakng_loader.get_data_path().encode()
    if library.espeak_Initialize(_NO_AUDIO, 0, data, 0) < 0:
        raise PhonemesError(f"espeak-ng cannot read its data in {data.decode()}")
    if library.espeak_SetVoiceByName(VOICE.encode()) != 0:
        raise PhonemesError(f"espeak-ng has no voice {VOICE}")
    return library
