"""The simulated drivers against NVIDIA's: the names that each exports, and what each look-up answers."""
import functools
import subprocess
import sys

import pytest

from real_driver import ALL, BUILD, call, driver, environment, version
from test_lookups import LIBRARIES, SOURCE, differing, exported, names

SIMULATED = BUILD / "lib/carve/sim"


@pytest.fixture(scope="module")
def sets(tmp_path_factory):
    """A set of one device for each driver: its environment by the driver's major number."""
    folder = tmp_path_factory.mktemp("sets")

    @functools.cache
    def of(major):
        subprocess.run([BUILD / "bin/carve-sim", "create", folder / major, f"a10@{major}"], check=True, stdout=subprocess.DEVNULL)
        return {"SIMGPU_DIR": str(folder / major), "LD_LIBRARY_PATH": str(SIMULATED / major)}
    return of


def names_of(file):
    lines = subprocess.run(["nm", "-D", "--defined-only", file], capture_output=True, text=True, check=True).stdout.splitlines()
    return {line.split()[-1].partition("@")[0] for line in lines}


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("major", ALL)
def test_a_simulated_driver_exports_the_names_of_nvidias(major, library):
    theirs = exported(major, library)
    assert len(theirs) > 200 and names_of(SIMULATED / major / library) == theirs


def test_the_lists_of_names_are_those_of_the_libraries():
    for major in ALL:
        driver(major)
    done = subprocess.run([sys.executable, SOURCE / "tools/driver-names", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("major", ALL)
def test_a_simulated_driver_has_the_version_of_nvidias(major, sets):
    program = "\n".join(["import ctypes", "cuda, nvml = ctypes.CDLL('libcuda.so.1'), ctypes.CDLL('libnvidia-ml.so.1')",
                         "number, text = ctypes.c_int(), ctypes.create_string_buffer(80)",
                         "assert cuda.cuDriverGetVersion(ctypes.byref(number)) == 0", "print(number.value)"])
    theirs = call([sys.executable, "-c", program], environment(major)).stdout
    more = "\n".join([program, "assert nvml.nvmlInit_v2() == 0 and nvml.nvmlSystemGetDriverVersion(text, 80) == 0", "print(text.value.decode())"])
    ours = call([sys.executable, "-c", more], sets(major))
    assert ours.stdout == f"{theirs}{version(major)}\n", ours.stderr


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("major", ALL)
def test_look_ups_answer_as_by_nvidias_driver(major, library, sets, tmp_path):
    """Each way of looking up each name, and each (name, version, flags) of cuGetProcAddress: the same export, result and status."""
    listed = tmp_path / "names"
    listed.write_text("\n".join(names(major, library)) + "\n")
    native, ours = (call([BUILD / "tests/nvidia_lookups", library, listed], variables) for variables in (environment(major), sets(major)))
    assert native.returncode == ours.returncode == 0, native.stderr + ours.stderr
    assert differing(native.stdout.splitlines(), ours.stdout.splitlines()) == {}
