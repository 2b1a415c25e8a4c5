"""What both trainings have in common: a state to continue from, and a loop with reports."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Any

import torch
from torch import Tensor

from cookbook.ming_mini.schedule import MeanMeter, RunClock
from cookbook.ming_mini.weights import Average, load_state, save_pieces, save_state

SAVE_SECONDS, PRINT_SECONDS = 60.0, 5.0
MEASURED_STEPS = 5
"""Every so many steps, the losses are read from the device, which waits for it."""

Report = Mapping[str, Tensor]


class ResumableTrainer(ABC):
    """A trainer that another call can continue.

    Its random numbers follow from the seed and the step where a call begins.
    """

    average: Average
    """Of the weights that are trained."""

    def __init__(self, name: str, seed: int, split_bytes: int, device: torch.device) -> None:
        """Start at step 0.

        Args:
            name: Name of the files.
            seed: Of the random numbers.
            split_bytes: The most bytes of a file of weights.
            device: Where the noise is drawn.
        """
        self.device, self.step = device, 0
        self._name, self._seed, self._split_bytes = name, seed, split_bytes
        self._noise, self._draws, self._rng = torch.Generator(device), torch.Generator(), Random()
        self._seed_random_numbers()

    @abstractmethod
    def parts(self) -> Mapping[str, Any]:
        """Return everything that has a state, by name."""

    def resume(self, folder: Path) -> float:
        """Continue the run whose state is in `folder`. Returns the seconds that it took so far."""
        state = load_state(folder, self._name, self.device)
        if state is None:
            return 0.0
        for name, part in self.parts().items():
            part.load_state_dict(state[name])
        self.step = state["step"]
        self._seed_random_numbers()
        return float(state["spent"])

    def save(self, folder: Path, spent: float) -> None:
        """Write the averaged weights, and the state of a run that took `spent` seconds so far."""
        states = {name: part.state_dict() for name, part in self.parts().items()}
        save_state({**states, "step": self.step, "spent": spent}, folder, self._name)
        save_pieces(self.average.tensors, folder, self._name, self._split_bytes)

    def _seed_random_numbers(self) -> None:
        for generator in (self._noise, self._draws):
            generator.manual_seed(self._seed + self.step)
        self._rng.seed(self._seed + self.step)


def run_trainer(
    trainer: ResumableTrainer,
    train: Callable[[float], tuple[str, Report]],
    output: Path,
    clock: RunClock,
) -> None:
    """Train until the time is over; print every five seconds, save every minute.

    `train` runs a step, given the share of the run that is over, and returns the name of what was
    trained with its losses.
    """
    meters: dict[str, MeanMeter] = {}
    printed, saved = clock.elapsed, clock.elapsed
    while clock.running:
        name, report = train(clock.progress)
        if trainer.step % MEASURED_STEPS == 0:
            meter = meters.setdefault(name, MeanMeter())
            meter.add({loss: value.item() for loss, value in report.items()})
        if clock.elapsed - printed > PRINT_SECONDS:
            printed = clock.elapsed
            means = {name: meter.flush() for name, meter in meters.items() if meter}
            print(f"{clock.spent:.0f} s, step {trainer.step}", means, flush=True)
        if clock.elapsed - saved > SAVE_SECONDS:
            saved = clock.elapsed
            trainer.save(output, clock.spent)
    trainer.save(output, clock.spent)
