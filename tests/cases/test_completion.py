"""Tests the completion scripts in the shells that read them."""
import re
import shutil
import subprocess

import pytest

from support.agent import BUILD

# A word in fish: parts in single quotes, in which \' and \\ are escapes, and parts without quotes.
WORD = re.compile(r"(?:'(?:[^'\\]|\\['\\])*'|[^\s'();|&])+")


def script(shell):
    return subprocess.run([BUILD / "bin/carve", "completion", shell], capture_output=True, text=True, check=True).stdout


def test_every_line_for_fish_is_one_command():
    for line in script("fish").splitlines():
        words = WORD.findall(line)
        assert " ".join(words) == line and words[:3] == ["complete", "-c", "carve"], line


def test_the_script_for_fish_contains_subcommands_and_file_options():
    lines = script("fish").splitlines()
    inner = "-n '__fish_seen_subcommand_from node; and __fish_seen_subcommand_from set'"
    assert any(inner in line and "-l policy -x -a" in line for line in lines)
    assert any("'__fish_seen_subcommand_from apply'" in line and "-l file -s f -r -F" in line for line in lines)


@pytest.mark.skipif(not shutil.which("fish"), reason="fish is not installed")
@pytest.mark.parametrize("words, completed", [("carve dr", "drain"), ("carve get ser", "services"), ("carve token cr", "create")])
def test_fish_completes_verbs_and_options(words, completed):
    done = subprocess.run(["fish", "--no-config", "-c", script("fish") + f"\ncomplete -C '{words}'"], capture_output=True, text=True)
    assert done.stderr == "" and done.stdout.split("\t")[0].strip() == completed


@pytest.mark.parametrize("words, completed", [("carve get serv", "services"), ("carve describe --name", "--namespace")])
def test_bash_completes_kinds_and_options(words, completed):
    line = f'COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _carve; echo "${{COMPREPLY[*]}}"'
    done = subprocess.run(["bash", "-c", script("bash") + line], capture_output=True, text=True,
                          env={"PATH": f"{BUILD}/bin:/usr/bin:/bin", "CARVE_SOCKET": "/nowhere", "CARVE_CONTROLLER": "/nowhere"})
    assert (done.stdout, done.stderr) == (completed + "\n", "")
