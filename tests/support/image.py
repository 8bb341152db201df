"""A container image for the tests."""
import re
import shutil
import subprocess

import pytest

from conftest import LOAD

IMAGE = "carve-cases"


@pytest.fixture(scope="module")
def carve_image(tmp_path_factory):
    """Builds an image with a shell, the workload and their libraries."""
    root = tmp_path_factory.mktemp("image")
    for folder in ("bin", "lib64", "lib/x86_64-linux-gnu", "tmp", "proc", "dev", "sys"):
        (root / folder).mkdir(parents=True)
    for program in ("/bin/bash", "/bin/sleep", "/bin/cat", str(LOAD)):
        shutil.copy(program, root / "bin")
        for library in re.findall(r"/\S+", subprocess.run(["ldd", program], capture_output=True, text=True).stdout):
            shutil.copy(library, root / "lib64" if "ld-linux" in library else root / "lib/x86_64-linux-gnu")
    # Files that every image with glibc has, whether or not these programs need them.
    for library in ("libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1"):
        shutil.copy(f"/lib/x86_64-linux-gnu/{library}", root / "lib/x86_64-linux-gnu")
    archive = root.parent / "image.tar"
    subprocess.run(["tar", "-C", root, "-cf", archive, "."], check=True)
    # CUDA's base images request all devices from NVIDIA's runtime with this variable.
    made = subprocess.run(["podman", "import", "--change", "ENV NVIDIA_VISIBLE_DEVICES=all", archive, IMAGE], capture_output=True,
                          text=True)
    if made.returncode != 0:
        pytest.skip(f"podman cannot import an image here: {made.stderr.strip()}")
    yield IMAGE
    subprocess.run(["podman", "rmi", "-f", IMAGE], capture_output=True)
