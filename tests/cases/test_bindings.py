"""Unmodified programs that use third-party bindings of the driver API: two for Python and one Rust crate.
Each sees its slice as the device, gets the driver's own error name when an allocation fails, and can allocate
the whole slice again after freeing it."""
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

from conftest import BUILD, GiB, MiB, over_drivers

THIRD_PARTY = pathlib.Path(__file__).resolve().parents[1] / "third_party"
PIECE = 64 * MiB


def run(world, *program, **environment):
    done = world.carve("run", "--memory", "2GiB", "--name", "a", "--", *program, env=environment, timeout=120)
    assert done.returncode == 0, (done.stdout + done.stderr)[-2000:]
    return [line.split() for line in done.stdout.splitlines()]


def sees_its_slice(world, line):
    context = world.json("devices")["devices"][0]["context_bytes"]
    devices, total, free = map(int, line)
    assert (devices, total) == (1, 2 * GiB)
    assert total - context - 4 * MiB <= free <= total - context
    return free // PIECE


@over_drivers
def test_cuda_python_runs_in_a_slice(world, driver):
    pytest.importorskip("cuda.bindings.driver", reason="cuda-bindings (PyPI) is not installed")
    first, *ways = run(world, sys.executable, THIRD_PARTY / "python/cuda_bindings.py")
    fit = sees_its_slice(world, first)
    assert {way[0] for way in ways} == {"cuMemAlloc", "cuMemAllocAsync", "cuMemCreate"}
    for name, count, error, again in ways:
        assert int(count) == fit and error == "CUDA_ERROR_OUT_OF_MEMORY" and again == "True", ways


@over_drivers
def test_numba_runs_in_a_slice(world, driver):
    pytest.importorskip("numba.core", reason="numba (PyPI) is not installed")
    packages = pathlib.Path(pytest.importorskip("numpy").__file__).parents[1]
    # The program uses NVIDIA's runtime library only to get its version; the wheel of the parity test contains
    # it.
    runtime = packages / "nvidia/cuda_runtime/lib"
    if not runtime.exists():
        pytest.skip("nvidia-cuda-runtime-cu12 (PyPI) is not installed")
    first, refused, again, done = run(world, sys.executable, THIRD_PARTY / "python/numba_arrays.py", LD_LIBRARY_PATH=str(runtime))
    fit = sees_its_slice(world, first)
    assert int(refused[0]) in (fit, fit - 1) and refused[1] == "2", "2 is CUDA_ERROR_OUT_OF_MEMORY"
    assert again == ["True"] and done == ["done"]


@over_drivers
def test_cudarc_runs_in_a_slice(world, driver):
    cargo = shutil.which("cargo")
    if cargo is None:
        pytest.skip("there is no cargo to build the Rust program with")
    target = BUILD / "third_party/cudarc"
    built = subprocess.run([cargo, "build", "--release", "--locked", "--manifest-path", THIRD_PARTY / "cudarc/Cargo.toml"],
                           env={**os.environ, "CARGO_TARGET_DIR": str(target)}, capture_output=True, text=True, timeout=300)
    if built.returncode != 0 and any(word in built.stderr for word in ("network", "registry", "edition", "rustc")):
        pytest.skip("the crate could not be had: " + built.stderr.strip().splitlines()[0][:150])
    assert built.returncode == 0, built.stderr[-2000:]
    first, refused, again = run(world, target / "release/third_party")
    fit = sees_its_slice(world, first)
    # The program holds one array of 4 MiB in a pool that grows by 32 MiB.
    assert int(refused[0]) in (fit, fit - 1) and refused[1] == "CUDA_ERROR_OUT_OF_MEMORY"
    assert again == ["true"]


LAZY = """
import ctypes, sys
lazy = ctypes.CDLL(sys.argv[1])
lazy.lazy_total.restype = ctypes.c_long
print(lazy.lazy_total())
"""


def test_a_library_that_loads_the_driver_at_its_first_call_uses_the_preload(world):
    """TensorFlow defines the driver's names itself, but those of a preloaded library come first."""
    assert run(world, sys.executable, "-c", LAZY, BUILD / "tests/liblazy_driver.so") == [[str(2 * GiB)]]
