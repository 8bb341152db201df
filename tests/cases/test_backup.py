"""Tests `carve backup` of running programs and `carve restore`."""
import json
import os
import shutil
import subprocess

import pytest

from conftest import BUILD, until
from test_up import as_user, carve, home  # noqa: F401, the fixture

pytestmark = [
    pytest.mark.usefixtures("own_network"),
    pytest.mark.skipif(shutil.which("haproxy") is None, reason="haproxy is not installed: apt-get install haproxy"),
]


def good(home, *words):
    done = carve(home, *words)
    assert done.returncode == 0, (words, done.stdout, done.stderr)
    return done.stdout


def up(home):
    good(home, "up", "--sim", "a10x2", "--listen", "none")


def tokens(home):
    return [token["name"] for token in json.loads(good(home, "token", "ls", "-o", "json"))["items"]]


def test_what_was_copied_while_all_runs_is_there_after_a_restore(home):
    up(home)
    good(home, "token", "create", "before")
    good(home, "run", "--memory", "2GiB", "--name", "early", "--", "true")
    assert until(lambda: "early" in good(home, "bill", "--lines"), 30)
    backup = home / "b"
    out = good(home, "backup", str(backup))
    assert [line.split()[0] for line in out.splitlines()] == ["PROGRAM", "controller", "agent"], out
    assert oct(backup.stat().st_mode & 0o777) == "0o700"
    parts = {part["program"]: {file["name"] for file in part["files"]} for part in json.loads((backup / "backup.json").read_text())["parts"]}
    assert "ledger.db" in parts["agent"] and {"controller.db", "usage.db"} <= parts["controller"], parts
    assert not [name for names in parts.values() for name in names if "lock" in name or "wal" in name or "shm" in name], parts

    good(home, "token", "create", "after")
    refused = carve(home, "restore", str(backup))
    assert refused.returncode == 1 and "stop it first" in refused.stderr, refused.stderr
    assert set(tokens(home)) == {"before", "after"}, "a rejected restore changes nothing"
    good(home, "down")
    good(home, "restore", str(backup))
    up(home)
    assert tokens(home) == ["before"]
    assert "early" in good(home, "bill", "--lines")
    kept = list((home / ".local/state/carve-controller").glob("before-restore-*"))
    assert len(kept) == 1 and (kept[0] / "controller.db").exists()


def test_an_incomplete_backup_is_none(home):
    nothing = carve(home, "backup", str(home / "b"))
    assert nothing.returncode == 1 and "--controller-state DIR, or use --only agent" in nothing.stderr, nothing.stderr
    up(home)
    good(home, "backup", str(home / "b"))
    again = carve(home, "backup", str(home / "b"))
    assert again.returncode == 1 and "b exists; name a new folder" in again.stderr
    good(home, "down")
    state = home / ".local/state"
    good(home, "backup", str(home / "stopped"), "--agent-state", str(state / "carve"), "--controller-state", str(state / "carve-controller"))
    database = state / "carve/ledger.db"
    with open(database, "r+b") as file:
        file.write(b"x" * 4096)
    broken = carve(home, "backup", str(home / "c"), "--only", "agent", "--agent-state", str(state / "carve"))
    assert broken.returncode == 1 and "ledger.db: the database is damaged" in broken.stderr, broken.stderr
    assert not (home / "c").exists() and not (home / "c.partial").exists()
    elsewhere = carve(home, "backup", str(home / "d"), "--only", "agent", "--agent-state", "/usr/share/doc")
    assert elsewhere.returncode == 1 and "there is no database of the agent there" in elsewhere.stderr


def test_a_changed_backup_is_rejected_before_anything_moves(home):
    up(home)
    good(home, "down")
    state = home / ".local/state"
    where = ["--agent-state", str(state / "carve"), "--controller-state", str(state / "carve-controller")]
    good(home, "backup", str(home / "b"), *where)
    before = sorted(os.listdir(state / "carve"))
    manifest = home / "b/backup.json"
    text = manifest.read_text()

    def refused(reason):
        done = carve(home, "restore", str(home / "b"), "--only", "agent")
        assert done.returncode == 1 and reason in done.stderr, done.stderr
        assert sorted(os.listdir(state / "carve")) == before
    manifest.write_text(text.replace('"ledger.db"', '"../ledger.db"'))
    refused("is not a file of a backup")
    manifest.write_text(text.replace('"ledger.db"', '"other.db"'))
    refused("No such file")
    manifest.write_text(text[:50])
    refused("backup.json")
    manifest.write_text(text)
    with open(home / "b/agent/ledger.db", "r+b") as file:
        file.truncate(4096)
    refused("it has 4096 bytes")
    manifest.unlink()
    refused("a backup is a folder that 'carve backup' has written")


def test_a_disk_that_is_full_leaves_no_backup(home):
    up(home)
    # With SIGXFSZ ignored, writing beyond the limit of 4 KiB fails as on a full disk.
    full = subprocess.run(["bash", "-c", f"trap '' XFSZ; ulimit -f 4; exec {BUILD}/bin/carve backup {home}/b"], capture_output=True, **as_user(home))
    assert full.returncode == 1 and f"{home}/b.partial" in full.stderr, full.stderr
    assert not (home / "b").exists() and not (home / "b.partial").exists()


def test_an_interrupted_backup_is_named(home):
    up(home)
    (home / "b.partial").mkdir()
    refused = carve(home, "backup", str(home / "b"))
    assert refused.returncode == 1 and "b.partial exists; remove it" in refused.stderr, refused.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="restores another user's state as root")
def test_root_restores_the_state_of_another_user(home):
    """The files belong to that user afterwards, and a new state folder is as the controller makes it."""
    up(home)
    good(home, "down")
    state = home / ".local/state"
    good(home, "backup", str(home / "b"), "--only", "controller", "--controller-state", str(state / "carve-controller"))
    owner = (state / "carve-controller").stat()
    done = subprocess.run([BUILD / "bin/carve", "restore", str(home / "b")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert owner.st_uid != 0
    database = (state / "carve-controller/controller.db").stat()
    assert (database.st_uid, database.st_gid) == (owner.st_uid, owner.st_gid)
    assert list((state / "carve-controller").glob("before-restore-*/controller.db"))
    assert not list((state / "carve-controller").glob("restore-*"))
    up(home)
    good(home, "down")

    shutil.rmtree(state / "carve-controller")
    done = subprocess.run([BUILD / "bin/carve", "restore", str(home / "b")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert oct((state / "carve-controller").stat().st_mode & 0o777) == "0o700"
    (state / "carve-controller").rename(state / "elsewhere")
    (state / "carve-controller").symlink_to(state / "elsewhere")
    linked = subprocess.run([BUILD / "bin/carve", "restore", str(home / "b")], capture_output=True, text=True)
    assert linked.returncode == 1 and "carve-controller: Not a directory" in linked.stderr, linked.stderr
