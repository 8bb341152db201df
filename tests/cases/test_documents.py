"""The targets of the documents' links must exist, and the programs must have the commands that the documents
show."""
import pathlib
import re
import subprocess

import pytest

from conftest import BUILD

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCUMENTS = [ROOT / p for p in subprocess.run(["git", "-C", ROOT, "ls-files", "*.md"], capture_output=True, text=True).stdout.split()] \
    or sorted(ROOT.glob("*.md")) + sorted((ROOT / "docs").rglob("*.md"))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda d: str(d.relative_to(ROOT)))
def test_every_link_has_a_target(document):
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", document.read_text()):
        if "://" not in target:
            assert (document.parent / target).exists(), f"{document.name}: {target}"


def verbs(*of):
    """Returns the verbs of carve, or those of one of its verbs."""
    shown = subprocess.run([BUILD / "bin/carve", *of, "--help"], capture_output=True, text=True).stdout
    return set(re.findall(r"^  ([a-z]+) {2,}", shown, re.M))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda d: str(d.relative_to(ROOT)))
def test_every_command_in_the_documents_exists(document):
    """Compares every `carve VERB --option` of the documents with the help texts."""
    for verb, rest in re.findall(r"(?:^|[`$ /])carve ([a-z]+)((?: [^\n`#|]*)?)", document.read_text(), re.M):
        if verb not in verbs():
            continue  # "carve" as a word in a message.
        inner = re.match(r" ([a-z]+)", rest)
        words = [verb, inner[1]] if inner and inner[1] in verbs(verb) else [verb]
        known = subprocess.run([BUILD / "bin/carve", *words, "--help"], capture_output=True, text=True).stdout
        for option in re.findall(r"(--[a-z][a-z-]*)", rest.split(" -- ")[0]):
            assert option in known or option == "--help", f"{document.name}: carve {verb} {option}"


def test_every_reason_of_an_event_is_documented():
    header = (ROOT / "src/objects/object_event.h").read_text()
    words = re.findall(r'"(\w+)"', header.partition("Words<carve::objects::EventReason>")[2].partition("};")[0])
    page = (ROOT / "docs/monitoring.md").read_text()
    assert len(words) > 40 and [word for word in words if f"`{word}`" not in page] == []
