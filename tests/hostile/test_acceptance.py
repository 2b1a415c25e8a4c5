"""Every attack of one key on the server that users start first, for a short time each."""

from collections.abc import Iterator

import pytest

from tests.hostile.acceptance.attacks import ATTACKS
from tests.hostile.acceptance.measure import Measurement, default_server_with_keys
from tests.testing.machine import PATIENCE

pytestmark = [pytest.mark.long, pytest.mark.alone]
SECONDS = 20.0
WORKERS = 2


@pytest.fixture(scope="module")
def measurement() -> Iterator[Measurement]:
    with default_server_with_keys() as server:
        measurement = Measurement(server)
        measurement.measure_quiet(SECONDS)
        yield measurement


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_of_one_key_does_not_hurt_another(measurement: Measurement, name: str) -> None:
    effect = measurement.measure(name, SECONDS, WORKERS)
    print(effect)
    assert not effect.broken_bounds(PATIENCE)
