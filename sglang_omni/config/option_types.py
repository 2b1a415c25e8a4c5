"""Types of configuration values with their ranges."""

import math
from dataclasses import dataclass
from typing import Annotated, Literal


@dataclass(frozen=True)
class Range:
    """Range of a number, both ends included."""

    min: float
    max: float = math.inf


Count = Annotated[int, Range(1)]
Index = Annotated[int, Range(0)]
Port = Annotated[int, Range(0, 65535)]
Seconds = Annotated[float, Range(0)]
StepSeconds = Annotated[float, Range(1)]
Fraction = Annotated[float, Range(0, 1)]
Bytes = Annotated[int, Range(0)]
Device = Literal["auto", "cpu", "cuda"]
DType = Literal["auto", "float32", "bfloat16"]
Placement = Literal["manual", "auto"]
