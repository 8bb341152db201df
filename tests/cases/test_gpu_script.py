"""Runs the acceptance script for real devices (tests/gpu/run.sh) on simulated devices, so that it is known to
work when a device is available."""
import json
import subprocess

import pytest

from conftest import BUILD, MiB

pytestmark = pytest.mark.alone

GPU = BUILD.parent / "tests/gpu"
NEEDS_MORE_THAN_A_SIMULATOR = {"toolkit", "samples", "profiler", "framework.pytorch", "framework.cupy", "framework.jax", "framework.triton",
                               "training"}


def test_every_case_passes_or_reports_why_not(tmp_path):
    pack = tmp_path / "pack"
    subprocess.run([GPU / "pack", pack, BUILD], check=True, capture_output=True)
    for needed in "lib/carve/sim", "bin/carve-sim":
        (pack / needed).symlink_to(BUILD / needed)
    done = subprocess.run([pack / "run.sh", pack, "--sim", "a10x2", "--json", tmp_path / "gpu.json"], capture_output=True, text=True,
                          timeout=400)
    assert done.returncode == 0, done.stdout + done.stderr
    document = json.loads((tmp_path / "gpu.json").read_text())
    assert document["simulated"] and "simulated" in done.stdout.splitlines()[0]
    skipped = {c["name"]: c["why"] for c in document["cases"] if c["status"] == "skipped"}
    assert all(skipped.values())
    ran = {c["name"]: c["measured"] for c in document["cases"] if c["status"] == "ok"}
    assert ran.keys() >= {"identity", "sharing", "foreign", "death", "many", "context", "bypass", "overhead"}
    assert {name for name in skipped if not name.startswith(("quota.", "device_time."))} <= NEEDS_MORE_THAN_A_SIMULATOR
    assert all(ran[name]["device_bytes_at_most"] for name in ran if name.startswith("quota."))
    assert ran["many"]["device_bytes_at_most"] > 15 << 30, "nobody pressed against the quota"


def test_the_packed_script_runs_from_any_folder(tmp_path):
    packed = subprocess.run([GPU / "pack", tmp_path / "pack", BUILD], check=True, capture_output=True, text=True)
    archive = tmp_path / "pack.tar.xz"
    assert f"{archive}: {archive.stat().st_size >> 10} KiB" in packed.stdout and archive.stat().st_size < 16 * MiB
    done = subprocess.run([tmp_path / "pack/run.sh", tmp_path / "pack", "--json", tmp_path / "gpu.json"], capture_output=True, text=True,
                          timeout=400, env={"PATH": "/usr/bin:/bin"})
    assert done.returncode != 0 and "carved: cannot load NVML" in done.stderr


def test_a_wrong_folder_is_reported(tmp_path):
    done = subprocess.run([GPU / "run.sh", tmp_path], capture_output=True, text=True)
    assert done.returncode == 2 and f"{tmp_path} has no bin/carved" in done.stderr
