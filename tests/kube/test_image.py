"""Images are built only with tar, are identical each time, and their programs run without anything else."""
import json
import os
import subprocess
import tarfile

import pytest

from cluster import BIN, BUILD, ROOT

BUILDER = ROOT / "deploy/image/build"


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    """Creates a folder as `cmake --install` would for one program."""
    folder = tmp_path_factory.mktemp("prefix")
    (folder / "bin").mkdir()
    subprocess.run(["strip", "-o", folder / "bin/carve-coordinator", BUILD / "bin/carve-coordinator"], check=True)
    return folder


def built(folder, *arguments):
    output = folder / "image.tar"
    subprocess.run([BUILDER, "--output", output, *arguments], check=True, capture_output=True)
    return output


def test_equal_inputs_give_identical_images(prefix, tmp_path):
    first = built(tmp_path, prefix).read_bytes()
    assert first == built(tmp_path, prefix).read_bytes()


@pytest.mark.skipif(os.geteuid() != 0, reason="chroot needs root")
def test_a_program_runs_in_the_image_with_its_libraries(prefix, tmp_path):
    image = built(tmp_path, "--name", "localhost/carve:test", prefix)
    with tarfile.open(image) as archive:
        manifest = json.load(archive.extractfile("manifest.json"))[0]
        assert manifest["RepoTags"] == ["localhost/carve:test"]
        with tarfile.open(fileobj=archive.extractfile("layer.tar")) as layer:
            assert {m.mtime for m in layer.getmembers()} == {0}
            layer.extractall(tmp_path / "root")
    done = subprocess.run(["chroot", tmp_path / "root", "/usr/bin/carve-coordinator", "--version"], capture_output=True, text=True)
    assert done.stdout.startswith("carve-coordinator "), done.stderr


def test_a_single_static_program_can_be_packed(tmp_path):
    image = built(tmp_path, "--program", BIN / "ctr")
    with tarfile.open(image) as archive, tarfile.open(fileobj=archive.extractfile("layer.tar")) as layer:
        assert "./usr/bin/ctr" in layer.getnames()


def test_a_program_is_found_on_path(tmp_path):
    env = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"}
    done = subprocess.run([BUILDER, "--output", tmp_path / "i", "--program", "ctr"], capture_output=True, text=True, env=env)
    assert done.returncode == 0 and "localhost/ctr:latest" in done.stdout, done.stderr


def rendered(overlay):
    kustomize = [BIN / "kubectl", "kustomize", ROOT / "deploy/kubernetes/overlays" / overlay]
    return subprocess.run(kustomize, check=True, capture_output=True, text=True).stdout.splitlines()


def test_the_overlay_simulated_differs_only_in_the_devices():
    # test_pods_of_carve.py runs an agent with this change.
    ours, theirs = rendered("simulated"), rendered("default")
    assert {line.strip() for line in set(ours) ^ set(theirs)} == {"- --driver-root=/host", "- --sim=a10x2"}
    assert len(ours) == len(theirs)


def test_the_overlay_loopback_can_be_upgraded_and_drained():
    lines = [line.strip() for line in rendered("loopback")]
    assert "maxSurge: 0" in lines and "minAvailable: 0" in lines, "one replica has the host's ports"


@pytest.mark.parametrize("arguments", [[], ["--program", "/none"], ["--program", "none"], ["/none"], ["--other"]])
def test_an_invalid_command_line_is_rejected(tmp_path, arguments):
    done = subprocess.run([BUILDER, "--output", tmp_path / "i", *arguments], capture_output=True, text=True)
    assert done.returncode != 0 and done.stderr.startswith("build: ")
