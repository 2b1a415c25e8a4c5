"""A limit per minute: what is left fills evenly, and never above the limit."""

import math

import pytest

from sglang_omni.admission.rate_limit.bucket import (
    compute_wait_s,
    new_bucket,
    refill,
    take,
    to_status,
)
from sglang_omni.entrypoints.http.middleware.rate_limit import format_duration


def test_a_full_bucket_gives_the_whole_limit_at_once_and_refills_evenly() -> None:
    bucket = take(new_bucket(60, now=100.0), 60)
    assert compute_wait_s(bucket, 1) == 1.0
    assert refill(bucket, 101.0).level == 1.0
    assert refill(bucket, 1000.0).level == 60.0
    assert to_status(refill(bucket, 130.0)).remaining == 30
    assert to_status(refill(bucket, 130.0)).reset_s == 30.0


def test_what_is_given_back_never_overfills_and_debts_are_paid_first() -> None:
    bucket = new_bucket(100, now=0.0)
    assert take(bucket, -50).level == 100
    in_debt = take(bucket, 150)
    assert to_status(in_debt).remaining == 0
    assert compute_wait_s(in_debt, 1) == pytest.approx(30.6)


def test_more_than_the_limit_never_fits() -> None:
    assert math.isinf(compute_wait_s(new_bucket(10, now=0.0), 11))


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0ms"),
        (0.0169, "17ms"),
        (1.0, "1s"),
        (8.64, "8.64s"),
        (59.9999, "1m0s"),
        (360.0, "6m0s"),
        (72.172, "1m12.172s"),
        (3600.0, "1h0m0s"),
    ],
)
def test_times_are_told_as_openai_tells_them(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text
