"""Attacks of one user of the controller's API: the others must get their answers meanwhile."""
import os
import pathlib
import re
import sys
import time

import pytest
from conftest import long_form

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from support.over_unix import asked
from neighbour import as_nobody  # A fixture.

pytestmark = pytest.mark.alone
SECONDS = 20 if long_form else 3
SLOW_S = 1.0

def longest_turn(services):
    return float(re.search(r"^carve_controller_loop_longest_turn_seconds (\S+)", services.text("/metrics"), re.M)[1])


@pytest.mark.parametrize("what", ["aliases", "keys", "many-documents", "deep-document", "slow-readers-of-the-controller"])
def test_one_user_of_the_controller(services, as_nobody, what):
    os.chmod(services.folder, 0o755)
    os.chmod(services.socket, 0o666)
    before = longest_turn(services)
    as_nobody(what, services.socket, 300 if what.startswith("slow") else 30)
    times, errors = [], []
    end = time.monotonic() + SECONDS
    while time.monotonic() < end or len(times) < 5:
        begin = time.monotonic()
        try:
            status = asked(services.socket, "/v1/services?limit=1")[0]
            if status != 200:
                errors.append(status)
        except OSError as e:
            errors.append(e)
        times.append(time.monotonic() - begin)
        time.sleep(0.05)
    figures = (f"{max(times) * 1000:.0f} ms at most of {len(times)} answers, {len(errors)} errors {errors[:2]}; longest turn of the loop "
               f"{before * 1000:.0f} ms before, {longest_turn(services) * 1000:.0f} ms after")
    print(figures)
    assert not errors, figures
    assert sum(t > SLOW_S for t in times) <= 0.02 * len(times), figures
    services.carve("get", "services")
