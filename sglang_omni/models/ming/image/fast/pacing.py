"""How far the CPU runs ahead of the GPU.

Waiting for the end of each step would leave the GPU idle while the next one is launched. Not
waiting at all would queue several steps, which a cancelled image would still take.
"""

import torch


class Pacer:
    """Waits, before a step is launched, until the GPU is near the end of the previous one."""

    def __init__(self, device: torch.device) -> None:
        self._event = torch.cuda.Event() if device.type == "cuda" else None

    def mark(self) -> None:
        """Mark the point of a step at which the next one may be launched."""
        if self._event is not None:
            self._event.record()

    def wait(self) -> None:
        """Wait until the GPU has passed the latest mark."""
        if self._event is not None:
            self._event.synchronize()
