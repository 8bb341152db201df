"""Memory beyond the quota, on the host: what may be asked for, and what is shown of it."""
import pytest

from conftest import LOAD, GiB


@pytest.mark.parametrize("words, says", [
    (["--oversubscribe", "managed"], "go together"),
    (["--spill", "1GiB"], "go together"),
    (["--oversubscribe", "swap", "--spill", "1GiB"], "swap"),
    (["--oversubscribe", "managed", "--spill", "some"], "'some'"),
    (["--oversubscribe", "managed", "--spill", "1000"], "'1000'"),
    (["--oversubscribe", "managed", "--spill", "9000TiB"], "this machine has"),
    (["--oversubscribe", "managed", "--spill", "1GiB", "--isolation", "none"], "needs a quota"),
])
def test_half_a_wish_is_refused_with_a_sentence(world, words, says):
    refused = world.carve("run", "--memory", "1GiB", *words, "--", "true")
    assert refused.returncode == 125 and says in refused.stderr, refused.stderr


def test_it_is_off_by_default(world):
    over = world.carve("run", "--memory", "1GiB", "--", LOAD, "--allocate", "2GiB")
    assert over.returncode == 1 and "OUT_OF_MEMORY" in over.stderr


def test_the_ceiling_is_kept_with_the_slice_and_shown(world):
    world.begin("run", "--memory", "1GiB", "--oversubscribe", "managed", "--spill", "3GiB", "--name", "a", "--",
                LOAD, "--allocate", "512MiB", "--seconds", "600")
    world.attached("a")
    assert world.show("a")["parts"][0]["spill_bytes"] == 3 * GiB
    assert "of 3 GiB beyond the quota" in world.carve("show", "a").stdout
    world.agent.kill()
    world.agent.wait()
    world.start()
    assert world.show("a")["parts"][0]["spill_bytes"] == 3 * GiB
