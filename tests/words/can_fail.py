"""Runs tools/words on a small tree: each kind of banned word must be found, exceptions must apply, and counts
may only decrease.

  can_fail.py PROJECT
"""
import pathlib
import subprocess
import sys
import tempfile

PROJECT = pathlib.Path(sys.argv[1])

# A source line, and the number of banned words in it.
LINES = [
    ("// The agent grants a slice.", 0),
    ("// Somebody waits.", 1),
    ("int most_cards_of(TenantId keeper);", 3),
    ("int discarded = wholecard + cardinal;", 0),
    ("carved --keeper 7", 1),
    ("// The agent says no.", 1),
    ("const bool says = asks;", 0),
    ('const char* text = "the agent asks";', 1),
    ("int n = 0;  // Empty: none is known; null: it ended.", 2),
    ("// What a program needs is granted.", 1),
    ("// Returns what a program needs.", 0),
    ("// Of each pod the name is kept.", 1),
    ("constexpr uint64_t longest_path = 107;", 1),
    ("const int longest_seen = longest(paths);", 0),
    ("constexpr int n = least_of(a, b);", 0),
]


def run(root, *words):
    done = subprocess.run([PROJECT / "tools/words", "--root", root, *words], capture_output=True, text=True)
    return done.returncode, done.stdout


def main():
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        subprocess.run(["git", "init", "-q", root], check=True)
        for name in ("docs", "src", "tools"):
            (root / name).mkdir()
        glossary = (PROJECT / "docs/glossary.md").read_text()
        (root / "docs/glossary.md").write_text(glossary.replace("```exceptions\n", "```exceptions\nsrc/vendor.h: card\n"))
        source, allowed = root / "src/a.cc", root / "tools/words.allowed"
        for line, count in LINES:
            source.write_text(line + "\n")
            subprocess.run(["git", "add", "src/a.cc"], cwd=root, check=True)
            status, out = run(root)
            assert (status, out.count("src/a.cc:1: ")) == (1 if count else 0, count), (line, status, out)

        source.write_text("// card\n// card\n")
        allowed.write_text("2 card\n")
        assert run(root)[0] == 0
        source.write_text("// card\n// card\n// card\n")
        assert run(root)[0] == 1, "a count above the allowed one passes"
        assert run(root, "--update")[0] == 1 and allowed.read_text() == "2 card\n", "--update raised a count"
        source.write_text("// card\n")
        assert run(root, "--update")[0] == 0 and allowed.read_text() == "1 card\n"
        source.write_text("// device\n")
        assert run(root, "--update")[0] == 0 and not allowed.exists(), "the list of counts outlives the last use"

        for path, status in (("src/vendor.h", 0), ("src/cards/a.cc", 1)):
            (root / path).parent.mkdir(exist_ok=True)
            (root / path).write_text("int card;\n" if status == 0 else "\n")
            subprocess.run(["git", "add", path], cwd=root, check=True)
            assert run(root)[0] == status, path


if __name__ == "__main__":
    main()
