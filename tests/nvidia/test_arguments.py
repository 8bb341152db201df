"""Makes calls with five kinds of arguments without a context. With Carve they must return and write the same
as with only the driver."""
import functools
import pathlib
import re

import pytest

from real_driver import BUILD, INITIALISED, call, environment, in_slice, shims

SOURCE = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = BUILD / "tests/nvidia_arguments"

# A hook reads a description, or a graph's nodes, before the driver does. If these are no valid pointers or
# handles the hook crashes, whereas the driver would first notice that there is no context.
READS_ITS_DESCRIPTION = re.compile("cuMemcpy[23]D|cuImportExternalMemory|cuGraphInstantiate|cuMemCreate")


def hooks():
    return re.findall(r"HOOK\((\w+)\)", (SOURCE / "src/guest/table.cc").read_text())


@pytest.fixture(scope="module")
def names(tmp_path_factory):
    file = tmp_path_factory.mktemp("names") / "hooks"
    file.write_text("\n".join(hooks()) + "\n")
    return file


def rows(done):
    assert done.returncode == 0, done.stderr
    return {tuple(line.split()[:2]): line.split()[2:] for line in done.stdout.splitlines()}


@functools.cache
def native(major, names):
    return rows(call([PROGRAM, names], environment(major, gpus=["GPU-01020304-0506-0708-090a-0b0c0d0e0f10"])))


def differing(expected, found):
    """Returns the differences for the driver's entries, except those documented above."""
    assert len(expected) > 900
    return {key: (row, found.get(key)) for key, row in expected.items()
            if found.get(key) != row and not (found.get(key) == ["crash"] and READS_ITS_DESCRIPTION.match(key[0]))}


@pytest.mark.parametrize("major", INITIALISED)
def test_calls_outside_of_slices_answer_like_the_driver(major, names):
    variables = environment(major, "preload", gpus=["GPU-01020304-0506-0708-090a-0b0c0d0e0f10"])
    assert differing(native(major, names), rows(call([PROGRAM, names], variables))) == {}


@pytest.mark.parametrize("way", ["preload", "shim"])
@pytest.mark.parametrize("major", INITIALISED)
def test_calls_in_a_slice_answer_like_the_driver(world, major, way, names):
    uuids = [d["uuid"] for d in world.json("devices")["devices"]]
    with shims(major, world.socket) as folder:
        found = rows(in_slice(world, [PROGRAM, names], environment(major, way, folder, uuids), "--device", "1"))
    assert differing(native(major, names), found) == {}
