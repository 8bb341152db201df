"""NVIDIA's own libraries as these tests use them: which ones are in the cache, and the ways in which a
program can load them."""
import contextlib
import functools
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import pytest

from support.agent import BUILD

SOURCE = pathlib.Path(__file__).resolve().parents[2]
CACHE = pathlib.Path(os.environ["CARVE_NVIDIA"])
RESPONDER = BUILD / "tests/nvidia_responder.so"
PRELOAD = BUILD / "lib/carve/libcarve.so"
ALL = ("470", "525", "535", "550")
INITIALISED = ("525", "535", "550")  # The drivers that the responder supports; 470 is only for look-ups.
WAYS = ("native", "preload", "shim")
EXPORTS = {"libcuda.so.1": "cuda_exports.txt", "libnvidia-ml.so.1": "nvml_exports.txt"}  # The lists of src/abi.
TOOLS = BUILD / "venv-nvidia/bin"  # What requirements.txt lists.
TWO = ("GPU-01020304-0506-0708-090a-0b0c0d0e0f10", "GPU-a1020304-0506-0708-090a-0b0c0d0e0f10")


def driver(major):
    """Returns the folder with libcuda.so.1, libnvidia-ml.so.1 and nvidia-smi of a driver."""
    folder = CACHE / "driver" / major
    if not folder.exists():
        pytest.skip(f"driver {major} could not be fetched")
    return folder


def version(major):
    return next(driver(major).glob("libcuda.so.*.*")).name.removeprefix("libcuda.so.")


def exported(major, library):
    lines = subprocess.run(["nm", "-D", "--defined-only", driver(major) / library], capture_output=True, text=True, check=True).stdout
    return {line.split()[-1].partition("@")[0] for line in lines.splitlines()}


@functools.cache
def names(major, library):
    """Returns all names that the driver exports, and those that any driver is known to export."""
    known = (SOURCE / "src/abi" / EXPORTS[library]).read_text().splitlines()
    theirs = {name for name in exported(major, library) if name.startswith(("cu", "nvml"))}
    return sorted(theirs | {line.split()[0] for line in known if line.strip() and not line.startswith("#")})


def runtime(release):
    """Returns the folder with the shared and the static library of CUDA's runtime."""
    found = sorted((CACHE / "cudart" / release).glob("nvidia/*/lib"))
    if not found:
        pytest.skip(f"CUDA runtime {release} could not be fetched")
    return found[0]


def tool(name):
    """Returns a program from the packages in requirements.txt, or the Python that imports them."""
    if not (TOOLS / name).exists():
        pytest.skip(f"{name}: tests/nvidia/requirements.txt could not be installed from PyPI")
    return TOOLS / name


def replaced(library, texts):
    """Returns the library's bytes with paths replaced by others, which are padded with slashes to the same
    length."""
    data = library.read_bytes()
    for before, after in texts.items():
        folder, name = os.path.split(str(after))
        padded = folder + "/" * (len(before) - len(folder) - len(name)) + name
        assert len(padded) == len(before) and before.encode() in data, f"{after} cannot replace {before}"
        data = data.replace(before.encode(), padded.encode())
    return data


@contextlib.contextmanager
def shims(major, socket="/nonexistent/s"):
    """Returns a folder with the shims as they are built, except for the two paths that a container mounts."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="nv", dir="/tmp"))
    (folder / "d").symlink_to(driver(major))
    (folder / "r").symlink_to(pathlib.Path(socket).parent)
    for name in "libcuda.so.1", "libnvidia-ml.so.1":
        paths = {f"/usr/lib/carve/driver/{name}": folder / "d" / name, "/run/carve/carved.sock": folder / "r" / pathlib.Path(socket).name}
        (folder / name).write_bytes(replaced(BUILD / "lib/carve/shim" / name, paths))
    yield folder
    shutil.rmtree(folder)


def environment(major, way="native", shim_folder=None, gpus=TWO):
    """Returns the variables with which a program loads the driver in this way. The driver does not use
    kernels that it compiled for others."""
    return {"CUDA_CACHE_DISABLE": "1", "LD_LIBRARY_PATH": str(shim_folder if way == "shim" else driver(major)),
            "LD_PRELOAD": f"{PRELOAD}:{RESPONDER}" if way == "preload" else str(RESPONDER),
            "RESPONDER_VERSION": version(major), "RESPONDER_GPUS": ",".join(gpus)}


def clean_environment():
    """Returns this process's variables without Carve's and the driver's."""
    return {k: v for k, v in os.environ.items() if not k.startswith(("LD_", "CARVE_", "CUDA_", "NVIDIA_"))}


def call(words, variables, **options):
    """Runs a program with these variables, without this process's variables for Carve and the driver."""
    return subprocess.run([str(word) for word in words], env={**clean_environment(), **variables}, capture_output=True, text=True, timeout=60, **options)


def with_variables(words, variables):
    """Returns the command with these variables instead of those that `carve run` sets."""
    unset = ["-u", "LD_LIBRARY_PATH", "-u", "LD_PRELOAD", "-u", "CUDA_VISIBLE_DEVICES"]
    return ["/usr/bin/env", *unset, *[f"{name}={value}" for name, value in variables.items()], *words]


def in_slice(world, words, variables, *options):
    """Runs a program in a slice of an agent that uses the simulated driver; the program itself uses
    NVIDIA's."""
    return world.carve("run", "--memory", "2GiB", *options, "--", *with_variables(words, variables))


def python(text, *arguments, interpreter=sys.executable):
    return [interpreter, "-c", text, *arguments]
