"""Compare the images of two running servers: PSNR and SSIM over prompts and seeds.

    sgl-omni serve --version v1 --model-path DIR --port 8001 --image.backend fast &
    sgl-omni serve --version v1 --model-path DIR --port 8002 --image.fp8 true &
    python -m benchmarks.images.servers --url http://127.0.0.1:8001 http://127.0.0.1:8002 \
        --prompt "a red circle above two blue squares" --prompt "a green star" --out FILE

Image `n` of `--seeds` has seed `n` and prompt `n` of those given, which repeat. The first server's
images are the ones that the second's are compared with.
"""

import argparse
import base64
import io
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from PIL import Image

from benchmarks.images.__main__ import compare_images
from measurement.environment import fingerprint

TIMEOUT_S = 600.0


def draw_images(
    client: httpx.Client, prompts: Sequence[str], seeds: int, size: str
) -> list[np.ndarray]:
    """Return one image per seed, uint8 [height, width, 3].

    Raises:
        httpx.HTTPStatusError: The server refused one.
    """
    images = []
    for seed in range(seeds):
        body = {"prompt": prompts[seed % len(prompts)], "size": size, "seed": seed}
        response = client.post("/v1/images/generations", json=body)
        response.raise_for_status()
        encoded = base64.b64decode(response.json()["data"][0]["b64_json"])
        images.append(np.asarray(Image.open(io.BytesIO(encoded)).convert("RGB")))
    return images


def main(arguments: Sequence[str] | None = None) -> None:
    """Draw with both servers, print the similarity and write it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--url", nargs=2, required=True, help="the two servers")
    parser.add_argument("--prompt", action="append", required=True)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--size", default="256x256")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args(arguments)
    drawn = []
    for url in options.url:
        with httpx.Client(base_url=url, timeout=TIMEOUT_S) as client:
            drawn.append(draw_images(client, options.prompt, options.seeds, options.size))
    expected, images = drawn
    similarity = compare_images(images, expected)
    print(json.dumps(similarity))
    if options.out:
        command = sys.argv[1:] if arguments is None else list(arguments)
        result: dict[str, Any] = {
            "environment": fingerprint(),
            "command": command,
            "similarity": similarity,
        }
        options.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
