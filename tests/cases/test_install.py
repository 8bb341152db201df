"""The result of `cmake --install` must be complete, run from any folder, and need only glibc 2.36."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import pytest

from conftest import BUILD, Agent

PROGRAMS = ("carve", "carved", "carve-controller", "carve-load", "carve-replay", "carve-sim", "carve-supervise")


@pytest.fixture(scope="module")
def prefix():
    folder = tempfile.mkdtemp(prefix="cvi-")
    subprocess.run(["cmake", "--install", BUILD, "--prefix", folder], check=True, capture_output=True)
    yield folder
    shutil.rmtree(folder)


def test_an_installed_release_runs_from_its_folder(prefix):
    world = Agent("a10x1", build=pathlib.Path(prefix))
    try:
        done = world.carve("run", "--memory", "2GiB", "--", f"{prefix}/bin/carve-load", "--allocate", "3GiB", "--no-touch")
        assert json.loads(done.stdout)["error"] == "CUDA_ERROR_OUT_OF_MEMORY"
        assert world.carve("doctor").returncode == 0
        maps = subprocess.run(["grep", "-l", str(BUILD), f"/proc/{world.process.pid}/maps"], capture_output=True, text=True)
        assert maps.returncode == 1, "the installed agent uses files of the build"
    finally:
        world.end()


def test_completion_is_installed_where_shells_search(prefix):
    assert "complete " in open(f"{prefix}/share/bash-completion/completions/carve").read()
    assert os.path.exists(f"{prefix}/share/fish/vendor_completions.d/carve.fish")


def test_json_schemas_for_editors_are_installed(prefix):
    assert json.load(open(f"{prefix}/share/carve/schemas/raycluster.json"))["title"] == "RayCluster"


def test_bash_completes_the_options_of_the_controller(prefix):
    script = f"source {prefix}/share/bash-completion/completions/carve-controller; COMP_WORDS=(carve-controller --log-level w); " \
             "COMP_CWORD=2; _carve_controller; echo ${COMPREPLY[*]}"
    assert subprocess.run(["bash", "-c", script], capture_output=True, text=True).stdout == "warning\n"


@pytest.mark.parametrize("unit", ["carved.service", "carve-controller.service", "carve-kubelet.service"])
def test_a_unit_starts_an_installed_program_with_valid_options(prefix, unit):
    text = pathlib.Path(prefix, "lib/systemd/system", unit).read_text()
    (line,) = re.findall(r"^ExecStart=(.*)$", text, re.M)
    program, *words = line.split()
    assert program.startswith(f"{prefix}/bin/"), "of the prefix that is installed to"
    known = subprocess.run([f"{prefix}/bin/{pathlib.Path(program).name}", "--help"], capture_output=True, text=True).stdout
    assert all(f"{word} " in known for word in words if word.startswith("--")), words


def test_the_controllers_user_is_installed_for_sysusers(prefix):
    lines = open(f"{prefix}/lib/sysusers.d/carve.conf").read().splitlines()
    unit = (BUILD / "deploy/carve-controller.service").read_text()
    (user,) = re.findall(r"^User=(.*)$", unit, re.M)
    (group,) = re.findall(r"^SupplementaryGroups=(.*)$", unit, re.M)
    assert any(line.startswith(f"u {user} ") for line in lines) and f"m {user} {group}" in lines


def test_bash_completes_verbs_and_options(prefix):
    script = f"source {prefix}/share/bash-completion/completions/carve; " \
             "COMP_WORDS=(carve run --mem); COMP_CWORD=2; _carve; echo ${COMPREPLY[*]}"
    assert subprocess.run(["bash", "-c", script], capture_output=True, text=True).stdout == "--memory\n"


def test_bash_completes_the_values_of_an_option(prefix):
    script = f"source {prefix}/share/bash-completion/completions/carve; " \
             "COMP_WORDS=(carve node set --policy g); COMP_CWORD=4; _carve; echo ${COMPREPLY[*]}; " \
             "COMPREPLY=(); COMP_WORDS=(carve trace -o t); COMP_CWORD=3; _carve; echo ${COMPREPLY[*]}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True)
    assert done.stdout == "guaranteed-burst-share\n\n", "-o of trace is a file"


@pytest.mark.parametrize("words, completed", [
    ("carved --overc", "--overcommit-compute"),
    ("carved --strategy sp", "spread"),
    ("carved --sim a10x2 --audit fr", "freeze"),
    ("carved --state --str", ""),  # A folder, which bash completes.
])
def test_bash_completes_the_options_of_the_agent(prefix, words, completed):
    script = 'set -eu; source <("$0"/bin/carved --completion bash); diff <("$0"/bin/carved --completion bash) "$1"; ' \
             "complete -p carved >/dev/null; COMP_WORDS=($2); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); COMPREPLY=(); _carved || true; " \
             'echo "${COMPREPLY[*]}"'
    done = subprocess.run(["bash", "-c", script, prefix, f"{prefix}/share/bash-completion/completions/carved", words],
                          capture_output=True, text=True)
    assert (done.stdout, done.stderr) == (completed + "\n", "")


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_needs_only_glibc_and_none_newer_than_2_36(prefix, program):
    needed = subprocess.run(["readelf", "-dW", f"{prefix}/bin/{program}"], capture_output=True, text=True).stdout
    libraries = set(re.findall(r"NEEDED.*\[(.*)\]", needed))
    assert libraries <= {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2"}, libraries
    versions = subprocess.run(["readelf", "-VW", f"{prefix}/bin/{program}"], capture_output=True, text=True).stdout
    assert max(tuple(map(int, v.split("."))) for v in re.findall(r"GLIBC_([0-9.]+)", versions)) <= (2, 36)


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_program_prints_its_help(prefix, program):
    done = subprocess.run([f"{prefix}/bin/{program}", "--help"], capture_output=True, text=True)
    assert done.returncode == 0 and len(done.stdout) > 200
