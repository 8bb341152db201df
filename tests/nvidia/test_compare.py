"""Runs the script `compare` on programs whose results are known."""
import os
import shutil
import subprocess
import sys

import pytest

from real_driver import CACHE, SOURCE

COMPARE = SOURCE / "tests/nvidia/compare"
START = """
#include <cuda.h>
#include <cuda_runtime.h>
#include <nvml.h>
#include <unistd.h>
"""
PROGRAMS = {
    # 3 GiB fit on the device, but not in the slice.
    "fills": "int main() { void* p; int i; for (i = 0; i < 3; ++i) if (cudaMalloc(&p, 1u << 30)) return 7; return 0; }",
    "driver": "int main() { int n; return cuInit(0) || cuDeviceGetCount(&n) || n < 1; }",
    "memory": "int main() { nvmlDevice_t d; nvmlMemory_t m; return nvmlInit() || nvmlDeviceGetHandleByIndex(0, &d) ||"
              " nvmlDeviceGetMemoryInfo(d, &m); }",
    "fails": "int main() { return 5; }",
    "waits": "int main() { for (;;) pause(); }",
}
SAME = {"driver": "0", "memory": "0", "fails": "5"}


@pytest.fixture
def folder(tmp_path):
    if not (CACHE / "headers").exists() or not shutil.which("gcc"):
        pytest.skip("NVIDIA's headers could not be fetched, or gcc is not installed")
    for name, text in PROGRAMS.items():
        (tmp_path / f"{name}.c").write_text(START + text)
    return tmp_path


def compare(folder, *words):
    environment = {**os.environ, "CARVE_NVIDIA": str(CACHE)}
    done = subprocess.run([sys.executable, COMPARE, folder, "--memory", "2GiB", *words], env=environment,
                          capture_output=True, text=True)
    return done, [line.split() for line in done.stdout.splitlines()[1:]]


def test_programs_with_the_same_result_are_reported_as_equal(folder):
    done, rows = compare(folder, *SAME)
    assert rows == [[name, end, end, end] for name, end in sorted(SAME.items())]
    assert done.returncode == 0, done.stderr


def test_a_program_that_does_not_end_is_killed(folder):
    done, rows = compare(folder, "waits", "--seconds", "1")
    assert rows == [["waits", "runs", "runs", "runs"]]
    assert done.returncode == 0, done.stderr


def test_a_program_that_ends_differently_in_a_slice_is_reported(folder):
    (folder / "wrong.c").write_text("int main() { return undeclared; }")
    done, rows = compare(folder, "fills", "wrong")
    assert rows == [["fills", "0", "7", "7"], ["wrong", "not", "compiled"]]
    assert done.returncode == 1 and "undeclared" in done.stderr and "--- fills, shim:" in done.stderr


def test_a_folder_without_programs_is_an_error(tmp_path):
    done, _ = compare(tmp_path)
    assert done.returncode == 2 and f"'{tmp_path}' has no C programs" in done.stderr
