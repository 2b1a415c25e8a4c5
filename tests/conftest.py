"""Settings that hold for every test."""

import torch

torch.set_num_threads(1)
