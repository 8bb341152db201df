"""Runs the acceptance script for real devices (tests/gpu) in its packed form with NVIDIA's libcuda. Cases
that need no device must pass, and every other case must be skipped with the reason."""
import json
import subprocess

from conftest import BUILD
from real_driver import SOURCE, clean_environment, environment

GPU = SOURCE / "tests/gpu"
# The responder counts memory per process, has no compiler for PTX, and shares no memory between processes.
NO_FIGURES = {"bypass", "death", "context", "many", "neighbours"}
DEVICE = ["GPU-b1020304-0506-0708-090a-0b0c0d0e0f10"]  # No other test's agent uses it.
NO_KERNELS = {"requests", "overhead"}


def test_the_packed_script_runs_with_libcuda(tmp_path):
    subprocess.run([GPU / "pack", tmp_path / "pack", BUILD], check=True, capture_output=True)
    subprocess.run(["tar", "-xf", tmp_path / "pack.tar.xz", "-C", tmp_path, "--transform", "s/^pack/there/"], check=True)
    there = tmp_path / "there"
    done = subprocess.run([there / "run.sh", there, "--json", tmp_path / "gpu.json", "--seconds", "1000"], capture_output=True, text=True,
                          timeout=280, env={**clean_environment(), **environment("550", gpus=DEVICE)})
    assert done.returncode == 0, done.stdout + done.stderr
    document = json.loads((tmp_path / "gpu.json").read_text())
    assert not document["simulated"] and document["where"].startswith("NVIDIA A10, driver 550.")
    cases = {case["name"]: case for case in document["cases"]}
    ran = {name for name, case in cases.items() if case["status"] == "ok"}
    assert {"identity", "foreign"} <= ran and len([name for name in ran if name.startswith("quota.")]) >= 18, done.stdout
    why = {name: case["why"] for name, case in cases.items() if case["status"] == "skipped"}
    assert NO_FIGURES == {name for name in why if "does not show what other processes hold" in why[name]}
    without_kernels = {name for name in why if "does not run this script's kernels" in why[name]}
    assert NO_KERNELS == {name for name in without_kernels if not name.startswith(("device_time.", "alone."))}
    assert "outside slices either" in why["sharing"]
    assert not any("no time left" in reason for reason in why.values())


def test_no_case_starts_after_the_time_limit(tmp_path):
    done = subprocess.run([GPU / "run.sh", BUILD, "--json", tmp_path / "gpu.json", "--seconds", "0", "--only", "identity", "--only", "foreign"],
                          capture_output=True, text=True, timeout=100, env={**clean_environment(), **environment("550", gpus=DEVICE)})
    assert done.returncode == 0, done.stdout + done.stderr
    cases = json.loads((tmp_path / "gpu.json").read_text())["cases"]
    assert [(case["name"], case["status"]) for case in cases] == [("identity", "skipped"), ("foreign", "skipped")]
    assert all("no time left" in case["why"] for case in cases)
