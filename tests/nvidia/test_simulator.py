"""Compares the simulated drivers with NVIDIA's: the exported names, the answers of look-ups, and the effects
of calls without a context."""
import functools
import subprocess
import sys

import pytest

from real_driver import ALL, BUILD, EXPORTS, INITIALISED, SOURCE, call, driver, environment, exported, names, python, version
from test_arguments import PROGRAM, names as hooks, native, rows  # `hooks` is a fixture.
from test_lookups import differing

SIMULATED = BUILD / "lib/carve/sim"


@pytest.fixture(scope="module")
def sets(tmp_path_factory):
    """Creates a set with one device for each driver; returns its environment by the driver's major number."""
    folder = tmp_path_factory.mktemp("sets")

    @functools.cache
    def of(major):
        subprocess.run([BUILD / "bin/carve-sim", "create", folder / major, f"a10@{major}"], check=True, stdout=subprocess.DEVNULL)
        return {"SIMGPU_DIR": str(folder / major), "LD_LIBRARY_PATH": str(SIMULATED / major)}
    return of


def names_of(file):
    lines = subprocess.run(["nm", "-D", "--defined-only", file], capture_output=True, text=True, check=True).stdout.splitlines()
    return {line.split()[-1].partition("@")[0] for line in lines}


@pytest.mark.parametrize("library", EXPORTS)
@pytest.mark.parametrize("major", ALL)
def test_a_simulated_driver_exports_the_same_names_as_nvidias(major, library):
    theirs = exported(major, library)
    assert len(theirs) > 200 and names_of(SIMULATED / major / library) == theirs


def test_the_lists_of_names_agree_with_the_libraries():
    for major in ALL:
        driver(major)
    done = subprocess.run([sys.executable, SOURCE / "tools/driver-names", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


CUDA_VERSION = """
import ctypes
number = ctypes.c_int()
assert ctypes.CDLL("libcuda.so.1").cuDriverGetVersion(ctypes.byref(number)) == 0
print(number.value)
"""
DRIVER_VERSION = """
nvml, text = ctypes.CDLL("libnvidia-ml.so.1"), ctypes.create_string_buffer(80)
assert nvml.nvmlInit_v2() == 0 and nvml.nvmlSystemGetDriverVersion(text, 80) == 0
print(text.value.decode())
"""


@pytest.mark.parametrize("major", ALL)
def test_a_simulated_driver_has_the_same_version_as_nvidias(major, sets):
    theirs = call(python(CUDA_VERSION), environment(major))
    ours = call(python(CUDA_VERSION + DRIVER_VERSION), sets(major))
    assert theirs.returncode == 0 and ours.stdout == f"{theirs.stdout}{version(major)}\n", theirs.stderr + ours.stderr


@pytest.mark.parametrize("library", EXPORTS)
@pytest.mark.parametrize("major", ALL)
def test_look_ups_give_the_same_answers_as_nvidias_driver(major, library, sets, tmp_path):
    """Each way to look up each name, and each (name, version, flags) of cuGetProcAddress, must give the same export, result and status."""
    listed = tmp_path / "names"
    listed.write_text("\n".join(names(major, library)) + "\n")
    native, ours = (call([BUILD / "tests/nvidia_lookups", library, listed], variables) for variables in (environment(major), sets(major)))
    assert native.returncode == ours.returncode == 0, native.stderr + ours.stderr
    assert differing(native.stdout.splitlines(), ours.stdout.splitlines()) == {}


# Rows (name, pattern) in which the two drivers differ. Rows in which NVIDIA's driver crashes on an invalid
# pointer are not compared.
TAKES_ANY_CONTEXT = "the driver takes any memory for a context: it sees a destroyed one, or makes it current"
DIFFERENT = {
    **{(name, pattern): TAKES_ANY_CONTEXT for name in ("cuCtxDestroy", "cuCtxDestroy_v2", "cuCtxSetCurrent") for pattern in "13"},
    **{(name, pattern): TAKES_ANY_CONTEXT for name in ("cuGreenCtxDestroy", "cuCtxPushCurrent_v2") for pattern in "134"},
    ("cuMemImportFromShareableHandle", "2"): "the kernel modules decide about the descriptor; the responder has none",
}


@pytest.mark.parametrize("major", INITIALISED)
def test_calls_without_a_context_have_the_same_results_as_with_nvidias_driver(major, sets, hooks):
    """Calls entries with hooks with five patterns of arguments each, and compares the results and the bytes
    written."""
    theirs = {key: row for key, row in native(major, hooks).items() if row != ["crash"]}
    ours = rows(call([PROGRAM, hooks], sets(major)))
    assert len(theirs) > 850
    wrong = {key: (row, ours.get(key)) for key, row in theirs.items() if ours.get(key) != row}
    assert {key: pair for key, pair in wrong.items() if key not in DIFFERENT} == {}
    assert set(DIFFERENT) & set(theirs) <= set(wrong), "these rows agree"
