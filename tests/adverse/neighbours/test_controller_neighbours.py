"""Attacks by one user of the controller's API, during which the other users must still get their answers."""
import os
import pathlib
import re
import sys
import time

import pytest
from conftest import long_form

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from support.over_unix import asked
from neighbour import LINES_AT_ONCE, NOBODY, as_nobody, flood_as_nobody, lines_left_out  # as_nobody is a fixture.

pytestmark = pytest.mark.alone
SECONDS = 20 if long_form else 3
SLOW_S = 1.0

def longest_turn(services):
    return float(re.search(r"^carve_controller_loop_longest_turn_seconds (\S+)", services.text("/metrics"), re.M)[1])


@pytest.mark.parametrize("what", ["aliases", "keys", "many-documents", "deep-document", "slow-readers-of-the-controller"])
def test_one_user_of_the_controller_does_not_delay_others(services, as_nobody, what):
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


def test_one_user_of_the_controller_does_not_fill_the_log(services):
    os.chmod(services.folder, 0o755)
    os.chmod(services.socket, 0o666)
    seconds = flood_as_nobody("refused-changes", services.socket, 20)
    assert asked(services.socket, "/v1/services/none", "DELETE")[0] == 404
    services.process.terminate()
    assert services.process.wait(20) == 0
    log = services.log()
    logged, left_out = log.count(f"by uid {NOBODY}: 404"), lines_left_out(log, f"uid {NOBODY}")
    print(f"{logged} lines in {seconds:.1f} s, {left_out} left out")
    assert logged <= LINES_AT_ONCE + seconds + 1
    assert logged + left_out == 2000
    assert "by root: 404" in log, "root has lines of its own"
