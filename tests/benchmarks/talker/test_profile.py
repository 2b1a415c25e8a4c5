"""What the profile of a talker's step makes of the kernels that the profiler saw."""

from benchmarks.talker.profile import label_kernels, summarise_costs
from benchmarks.tools.kernel_times import KernelEvent

BLOCK = [
    KernelEvent("_short_attention_kernel", 10.0),
    KernelEvent("_linear_kernel", 13.0),
    KernelEvent("_linear_kernel", 18.0),
]


def test_kernels_of_one_name_are_told_apart_by_their_place_after_attention() -> None:
    assert label_kernels([*BLOCK, *BLOCK])[2:4] == [
        "_linear_kernel +2",
        "_short_attention_kernel +0",
    ]


def test_a_kernel_costs_the_time_since_the_end_of_the_one_in_front() -> None:
    rows = summarise_costs([BLOCK, BLOCK])
    assert rows == [
        {"kernel": "_linear_kernel +2", "us": 5.0, "mean_us": 5.0, "count": 1.0},
        {"kernel": "_linear_kernel +1", "us": 3.0, "mean_us": 3.0, "count": 1.0},
    ]
