"""Measure what an engine on another machine costs: for each chunk of speech, and for features.

    python -m benchmarks.remote_engines --config cluster.yaml --node node-b --out result.json

The same engine, which computes nothing, runs here and on the node, and is asked by turns. A chunk
is 0.32 s of samples at 44.1 kHz. Features are those of an image of 1024 x 1024 pixels at the
released model's width: 3 MB there and 8 MB back. A round trip is a request for one of them. The
repository must be at the same path on the node.
"""

import argparse
import asyncio
import json
from dataclasses import asdict
from pathlib import Path

from benchmarks.remote_engines.measure import measure
from measurement.environment import fingerprint
from sglang_omni.config.load import load_config
from sglang_omni.serving.places import build_cluster_settings


def main() -> None:
    """Print what a node costs."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--config", type=Path, required=True, help="file with a section `cluster`")
    parser.add_argument("--node", required=True)
    parser.add_argument("--repeats", type=int, default=200)
    parser.add_argument("--out", type=Path, help="JSON of what is printed")
    args = parser.parse_args()
    cluster = build_cluster_settings(load_config(args.config, {}))
    costs = asyncio.run(measure(cluster, args.node, args.repeats))
    for cost in costs:
        print(f"{cost.what:10} here {cost.local_ms:6.2f} ms", end=", ")
        print(f"on {args.node} {cost.remote_ms:6.2f} ms", end=" ")
        print(f"(95 %: {cost.local_p95_ms:.2f}, {cost.remote_p95_ms:.2f})")
    if args.out:
        report = {"node": args.node, "costs": [asdict(cost) for cost in costs]}
        args.out.write_text(json.dumps({**report, "environment": fingerprint()}, indent=1) + "\n")


if __name__ == "__main__":
    main()
