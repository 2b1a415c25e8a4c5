"""What stands for the weights of the audio VAE. Needs no torch: the API process reads it."""

import hashlib
from pathlib import Path

from sglang_omni.protocol.errors import CheckpointError

# Enough of a file of weights to tell one training from another, little enough to read at a start.
SAMPLE_BYTES = 1 << 20


def vae_fingerprint(checkpoint: Path) -> str:
    """Return a digest of the audio VAE's weights, whose latents a stored voice is.

    Raises `CheckpointError` for files that cannot be read.
    """
    digest = hashlib.blake2b(digest_size=16)
    try:
        for path in sorted((checkpoint / "talker" / "vae").glob("*.safetensors")):
            digest.update(str(path.stat().st_size).encode())
            with path.open("rb") as file:
                digest.update(file.read(SAMPLE_BYTES))
    except OSError as error:
        raise CheckpointError(f"{checkpoint}: {error.strerror}") from None
    return digest.hexdigest()
