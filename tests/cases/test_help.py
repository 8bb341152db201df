"""`carve --help`, `carve help`, and what carve answers to words that it does not know."""
import re
import subprocess

import pytest

from conftest import BUILD


def carve(*words, status=0):
    done = subprocess.run([BUILD / "bin/carve", *words], capture_output=True, text=True)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


def verbs(*of):
    return re.findall(r"^  ([a-z]+) {2,}", carve(*of, "--help"), re.M)


PAGES = [()] + [(verb,) for verb in verbs()] + [(verb, inner) for verb in verbs() for inner in verbs(verb)]


@pytest.mark.parametrize("words", PAGES, ids=lambda words: " ".join(words) or "carve")
def test_a_help_text_is_plain_and_fits_100_columns(words):
    text = carve(*words, "--help")
    assert [line for line in text.splitlines() if len(line) > 100] == []
    assert not re.search(r"\b(UINT|INT|TEXT|FLOAT|REQUIRED)\b| in \[|:\{", text), text
    assert carve("help", *words) == text


def test_the_list_of_verbs_is_grouped_by_what_users_do():
    text = carve("--help")
    titles = re.findall(r"^([A-Z][a-z ]+):$", text, re.M)
    assert titles == ["Options", "Programs in slices", "Devices and nodes", "Services and other objects", "Jobs and invoices", "Operation"]
    assert len(verbs()) == len(set(verbs())) and {"run", "drain", "apply", "bill", "help"} <= set(verbs())


def test_a_misspelt_word_is_answered_with_the_word_that_was_meant():
    assert carve("cancle", "job/a", status=2) == "carve: unknown command 'cancle'; did you mean 'cancel'?\n"
    assert "carve: run: '--memroy' is not an option; did you mean '--memory'?" in carve("run", "--memroy", "4GiB", "--", "true", status=125)
    assert "rollout: 'statsu' is not one of" in carve("rollout", "statsu", "service/a", status=2)
    assert carve("frobnicate", status=2) == "carve: unknown command 'frobnicate'; 'carve --help' lists the commands\n"
    assert carve("help", "frobnicate", status=2) == "carve: 'frobnicate' is not a verb; 'carve help' lists the verbs\n"


@pytest.mark.parametrize("alias, verb", [("ls", "ps"), ("inspect", "show"), ("stats", "top"), ("kill", "stop"), ("update", "set")])
def test_a_word_of_docker_that_means_the_same_is_accepted(alias, verb):
    assert carve(alias, "--help") == carve(verb, "--help")


@pytest.mark.parametrize("words, answer", [
    (("patch", "service/a"), "unknown command 'patch'; use carve apply -f FILE, or carve edit KIND/NAME"),
    (("rm", "a"), "unknown command 'rm'; use carve stop NAME for a slice"),
    (("run", "--gpus", "1", "--", "true"), "run: '--gpus' is not an option; use --devices N with --memory SIZE"),
])
def test_another_word_of_docker_or_kubectl_is_answered_with_that_of_carve(words, answer):
    assert answer in carve(*words, status=125 if words[0] == "run" else 2)
