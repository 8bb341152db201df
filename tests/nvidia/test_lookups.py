"""Every way to look up an entry must find the same names as without Carve, and all ways must agree which
address belongs to which entry."""
import functools

import pytest

from real_driver import ALL, BUILD, EXPORTS, INITIALISED, WAYS, call, environment, exported, in_slice, names, python, runtime, shims, version

HOOKED = [way for way in WAYS if way != "native"]


@functools.cache
def answers(major, library, way, tmp_path):
    listed = tmp_path / f"names-{major}-{library}"
    listed.write_text("\n".join(names(major, library)) + "\n")
    with shims(major) as folder:
        done = call([BUILD / "tests/nvidia_lookups", library, listed], environment(major, way, folder))
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


@pytest.fixture(scope="module")
def listed(tmp_path_factory):
    return tmp_path_factory.mktemp("names")


def differing(native, hooked):
    """Returns the look-ups that are answered differently: {(way, name): (without, with)}."""
    tables = [{tuple(line.split(" ", 2)[:2]): line.split(" ", 2)[2] for line in lines} for lines in (native, hooked)]
    keys = [key for key in sorted({*tables[0], *tables[1]}) if tables[0].get(key) != tables[1].get(key)]
    return {key: tuple(table.get(key) for table in tables) for key in keys}


@pytest.mark.parametrize("way", HOOKED)
@pytest.mark.parametrize("library", EXPORTS)
@pytest.mark.parametrize("major", ALL)
def test_look_ups_give_the_same_answers_as_without_carve(major, library, way, listed):
    """All entries of the driver are found, and each (name, version, flags) of cuGetProcAddress has the same
    export, result and status."""
    native = answers(major, library, "native", listed)
    assert len(native) > 5 * len(names(major, library)) - 1 and not any(line.endswith(" ?") for line in native if line.startswith("dlsym "))
    theirs = exported(major, library)
    wrong = differing(native, answers(major, library, way, listed))
    wrong = {key: pair for key, pair in wrong.items() if key[1] in theirs}
    assert wrong == {}


@pytest.mark.parametrize("way", HOOKED)
@pytest.mark.parametrize("library", EXPORTS)
@pytest.mark.parametrize("major", ALL)
def test_entries_that_the_driver_lacks_are_not_found(major, library, way, listed):
    assert differing(answers(major, library, "native", listed), answers(major, library, way, listed)) == {}


@pytest.mark.parametrize("release", ["11.8", "12.9", "13.5"])
@pytest.mark.parametrize("major", INITIALISED)
def test_the_runtimes_look_ups_give_the_same_answers_as_without_carve(world, major, release, listed):
    """cudaGetDriverEntryPoint initialises the driver. An agent is running, but the program is in no slice."""
    file = listed / f"names-{major}"
    file.write_text("\n".join(names(major, "libcuda.so.1")) + "\n")
    library = next(runtime(release).glob("libcudart.so.*"))
    found = {}
    with shims(major, world.socket) as folder:
        for way in WAYS:
            variables = environment(major, way, folder)
            variables["CARVE_SOCKET"] = str(world.socket)
            done = call([BUILD / "tests/nvidia_lookups", "libcuda.so.1", file, library], variables)
            assert done.returncode == 0, done.stderr
            found[way] = done.stdout.splitlines()
    works = any(" 0/0/cuMemAlloc_v2" in line for line in found["native"])
    assert len(found["native"]) > 2000 and works == (release != "13.5"), version(major)
    for way in HOOKED:
        wrong = [(a, b) for a, b in zip(found["native"], found[way], strict=True) if a != b]
        assert wrong == [], way


LAZY = "import ctypes, sys; lazy = ctypes.CDLL(sys.argv[1]); lazy.lazy_total.restype = ctypes.c_long; print(lazy.lazy_total() >> 20)"


@pytest.mark.parametrize("way", HOOKED)
@pytest.mark.parametrize("major", INITIALISED)
def test_a_library_that_defines_the_drivers_names_stays_in_the_slice(world, major, way):
    """TensorFlow defines such names, which load the driver when they are first called."""
    uuids = [device["uuid"] for device in world.json("devices")["devices"]]
    with shims(major, world.socket) as folder:
        done = in_slice(world, python(LAZY, BUILD / "tests/liblazy_driver.so"), environment(major, way, folder, uuids))
    assert (done.returncode, done.stdout) == (0, "2048\n"), done.stderr
