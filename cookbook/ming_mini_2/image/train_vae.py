"""Train the image VAE for a given time, on pictures that the device draws.

    python -m cookbook.ming_mini_2.image.train_vae --examples DIR --output DIR --seconds 500

`--pause` ends a call before the run is over; the next call continues from the state in `--output`.
Beside the averaged weights it writes `latents.json`, the scale of the latents.
"""

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from cookbook.ming_mini.cuda_graphs import StepReplay
from cookbook.ming_mini.optimizer import Optimizer
from cookbook.ming_mini.options import run_parser, settings_from_args
from cookbook.ming_mini.schedule import Rate, RunClock
from cookbook.ming_mini.weights import PIECE_BYTES, Average, load_pieces
from cookbook.ming_mini_2.image.configs import SIZES, ImageSizes, LatentScale
from cookbook.ming_mini_2.image.drawing import PictureArrays, PictureDrawer
from cookbook.ming_mini_2.image.examples import Kind, join_pictures, read_examples
from cookbook.ming_mini_2.image.scenes import SIZE_SHARES, Size
from cookbook.ming_mini_2.image.scenes import SIZES as PICTURE_SIZES
from cookbook.ming_mini_2.image.training_run import ResumableTrainer, run_trainer
from cookbook.ming_mini_2.image.vae import (
    count_nats,
    encode_posterior,
    measure_scale,
    new_vae,
    to_model,
    to_pictures,
)

VAE_PIECES, SCALE_FILE = "image_vae", "latents.json"
MEASURED_BATCH = 16
RATE = Rate(2e-3, 2e-5, 200)


@dataclass(frozen=True)
class VAESettings:
    """The settings of a run. A nat of a latent costs `nats` of the loss.

    In the first part of the run, `squares_until`, a step sees `batch` squares of pictures, of
    `crop` pixels, which is faster. Then it sees `whole` pictures: the norms of the VAE average over
    a picture, so that colours learnt from squares alone change with what else a picture shows. The
    scale of the latents is measured of `measured` pictures.
    """

    batch: int = 256
    crop: int = 96
    whole: int = 64
    squares_until: float = 0.4
    rate: Rate = RATE
    nats: float = 4e-4
    squares: float = 2.0
    average: float = 0.998
    measured: int = 128
    seed: int = 0
    record: bool = True
    split_bytes: int = PIECE_BYTES


class PictureTable:
    """The pictures of each size as numbers on the device."""

    def __init__(self, pictures: dict[Size, PictureArrays], device: torch.device) -> None:
        self._rows = {
            size: tuple(torch.from_numpy(rows).to(device) for rows in (part.placed, part.colours))
            for size, part in pictures.items()
        }
        self._drawer = PictureDrawer(device)
        shares = zip(PICTURE_SIZES, SIZE_SHARES, strict=True)
        self._shares = {size: share for size, share in shares if size in pictures}

    def choose_size(self, rng: Random) -> Size:
        """Draw the size of a batch."""
        (size,) = rng.choices(tuple(self._shares), tuple(self._shares.values()))
        return size

    def choose_numbers(self, size: Size, count: int, generator: torch.Generator) -> Tensor:
        """Draw the numbers of pictures of a size, int64 [count] on the host."""
        return torch.randint(len(self._rows[size][0]), (count,), generator=generator)

    def draw(self, size: Size, index: Tensor) -> Tensor:
        """Return pictures [N, height, width, 3] of 0 to 255."""
        placed, colours = (rows.index_select(0, index) for rows in self._rows[size])
        return self._drawer.draw(placed, colours, size)

    def draw_parts(self, size: Size, index: Tensor, corners: Tensor, area: Size) -> Tensor:
        """Return parts [N, *area, 3] of pictures of a size; `corners` [N, 2] are upper left."""
        placed, colours = (rows.index_select(0, index) for rows in self._rows[size])
        # The picture moves, not the part.
        moved = torch.cat((placed[..., :2], placed[..., 2:] - corners[:, None]), dim=-1)
        return self._drawer.draw(moved, colours, area)


def choose_corners(size: Size, area: Size, count: int, generator: torch.Generator) -> Tensor:
    """Draw where parts of pictures begin, int16 [count, 2] on the host."""
    room = torch.tensor([whole - part + 1 for whole, part in zip(size, area, strict=True)])
    return (torch.rand(count, 2, generator=generator) * room).short()


def collect_pictures(kinds: dict[Kind, Any]) -> dict[Size, PictureArrays]:
    """Return all pictures of examples, before and after an edit, by their size."""
    found: dict[Size, list[PictureArrays]] = {}
    for (_, size), arrays in kinds.items():
        sources = [] if arrays.sources is None else [arrays.sources]
        found.setdefault(size, []).extend([arrays.targets, *sources])
    return {size: join_pictures(parts) for size, parts in found.items()}


class VAETrainer(ResumableTrainer):
    """The VAE and its training state."""

    def __init__(
        self,
        sizes: ImageSizes,
        settings: VAESettings,
        table: PictureTable,
        device: torch.device,
        start: Path | None = None,
    ) -> None:
        """Build the VAE; with `start`, a folder of weights, training starts from them."""
        super().__init__(VAE_PIECES, settings.seed, settings.split_bytes, device)
        self.settings, self._table = settings, table
        self.vae = new_vae(sizes, settings.seed).to(device)
        if start is not None:
            self.vae.load_state_dict(load_pieces(start, VAE_PIECES))
        self._optimizer = Optimizer(self.vae.parameters(), betas=(0.9, 0.98), decay=0.01)
        self.average = Average(self.vae, settings.average)
        self._replay = StepReplay(self._step, self._noise, settings.record)

    def train(self, progress: float) -> dict[str, Tensor]:
        """Run one step. Returns its losses, which the next step overwrites."""
        size = self._table.choose_size(self._rng)
        settings, area = self.settings, size
        count, is_square = settings.whole, progress < settings.squares_until
        if is_square:
            count, area = settings.batch, (settings.crop, settings.crop)
        index = self._table.choose_numbers(size, count, self._draws)
        corners = choose_corners(size, area, count, self._draws)
        rate = torch.tensor(self.settings.rate.at(progress, self.step))
        report = self._replay((size, area), (rate, index, corners))
        self.average.update()
        self.step += 1
        return report

    def _step(self, key: tuple[Size, Size], inputs: tuple[Tensor, ...]) -> dict[str, Tensor]:
        """Run one step on the device, on parts of pictures: both sizes are the key."""
        size, area = key
        rate, index, corners = inputs
        self._optimizer.rate.copy_(rate)
        with torch.no_grad():
            real = to_model(self._table.draw_parts(size, index, corners, area))
            real = real.contiguous(memory_format=torch.channels_last)
        with torch.autocast(self.device.type, torch.bfloat16, self.device.type == "cuda"):
            mean, log_variance = encode_posterior(self.vae, real)
            noise = torch.randn(mean.shape, generator=self._noise, device=self.device)
            made = self.vae.decoder(mean + (0.5 * log_variance).exp() * noise).float()
        absolute, squares = F.l1_loss(made, real), F.mse_loss(made, real)
        nats = count_nats(mean, log_variance)
        loss = absolute + self.settings.squares * squares + self.settings.nats * nats
        norm = self._optimizer.step(loss)
        found = {"absolute": absolute, "squares": squares, "nats": nats, "norm": norm}
        return {name: value.detach() for name, value in found.items()}

    @torch.no_grad()
    def measure(self) -> tuple[LatentScale, float]:
        """Return the scale of the averaged VAE's latents, and its error in levels of 255.

        The error is the mean over pixels of pictures that are decoded from the posterior's mean.
        """
        own = {name: tensor.clone() for name, tensor in self.vae.state_dict().items()}
        self.vae.load_state_dict(self.average.tensors)
        means, errors = [], []
        for _ in range(0, self.settings.measured, MEASURED_BATCH):
            size = self._table.choose_size(self._rng)
            count = min(MEASURED_BATCH, self.settings.measured)
            index = self._table.choose_numbers(size, count, self._draws)
            real = self._table.draw(size, index.to(self.device))
            mean, _ = encode_posterior(self.vae, to_model(real))
            means.append(mean.flatten())
            errors.append((to_pictures(self.vae.decoder(mean)) - real).abs().mean())
        self.vae.load_state_dict(own)
        return measure_scale(torch.cat(means)), torch.stack(errors).mean().item()

    def save(self, folder: Path, spent: float) -> None:
        """Write the averaged VAE and its scale, and the state of the run after `spent` seconds."""
        super().save(folder, spent)
        scale, error = self.measure()
        text = json.dumps({**asdict(scale), "error_levels": error}, indent=1)
        (folder / SCALE_FILE).write_text(text + "\n", encoding="utf-8")

    def parts(self) -> dict[str, Any]:
        """See `ResumableTrainer`."""
        return {"vae": self.vae, "average": self.average, "optimizer": self._optimizer}


def read_scale(folder: Path) -> LatentScale:
    """Return the scale of the latents of a trained VAE. Raises `FileNotFoundError`."""
    values = json.loads((folder / SCALE_FILE).read_text(encoding="utf-8"))
    return LatentScale(values["scaling"], values["shift"])


def load_vae(folder: Path, sizes: ImageSizes, device: torch.device) -> Any:
    """Return a trained VAE. Raises `FileNotFoundError`."""
    vae = new_vae(sizes, seed=0)
    vae.load_state_dict(load_pieces(folder, VAE_PIECES))
    return vae.to(device).eval()


def parse_arguments(arguments: Sequence[str] | None) -> tuple[argparse.Namespace, VAESettings]:
    """Parse the command line. Returns the arguments and the settings."""
    defaults = VAESettings()
    parser = run_parser(__doc__, defaults, defaults.rate.peak, data="examples")
    parser.set_defaults(seconds=500.0)
    parser.add_argument("--sizes", choices=tuple(SIZES), default="mini_2")
    parser.add_argument("--start", type=Path, help="weights to begin with")
    args = parser.parse_args(arguments)
    rate = Rate(args.peak, args.peak / 100, defaults.rate.warm_up)
    return args, replace(defaults, rate=rate, **settings_from_args(args, defaults))


def main(arguments: Sequence[str] | None = None) -> None:
    """Train, or continue to train, as the command line says."""
    args, settings = parse_arguments(arguments)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    device = torch.device(args.device)
    table = PictureTable(collect_pictures(read_examples(args.examples)), device)
    trainer = VAETrainer(SIZES[args.sizes], settings, table, device, args.start)
    args.output.mkdir(parents=True, exist_ok=True)
    clock = RunClock(args.seconds, args.pause, trainer.resume(args.output))
    run_trainer(trainer, lambda progress: ("vae", trainer.train(progress)), args.output, clock)
    print(f"{trainer.step} steps;", (args.output / SCALE_FILE).read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
