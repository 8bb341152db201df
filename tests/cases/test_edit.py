"""`carve diff`, `carve edit` and `carve rollout history --revision`: what users see before and after a change."""
import json
import os
import pathlib
import shutil
import subprocess

import pytest

from test_object_verbs import document, several

pytestmark = [
    pytest.mark.usefixtures("own_network"),
    pytest.mark.skipif(shutil.which("haproxy") is None, reason="haproxy is not installed: apt-get install haproxy"),
]


class Runner:
    """Runs carve with variables, in a TMPDIR of its own whose remains the test can see."""

    def __init__(self, services):
        self.services = services
        self.temporary = services.folder / "temporary"
        shutil.rmtree(self.temporary, ignore_errors=True)
        self.temporary.mkdir()

    def carve(self, *words, status=0, **variables):
        environment = {**self.services.agent.environment, "CARVE_CONTROLLER": str(self.services.socket), "TMPDIR": str(self.temporary), **variables}
        for name in ("CARVE_EDITOR", "EDITOR", "CARVE_EXTERNAL_DIFF"):
            if name not in variables:
                environment.pop(name, None)
        done = subprocess.run([self.services.agent.build / "bin/carve", *map(str, words)], capture_output=True, text=True, timeout=120,
                              stdin=subprocess.DEVNULL, env=environment)
        assert done.returncode == status, (words, done.stdout, done.stderr)
        return done

    def remains(self):
        return sorted(path.name for path in self.temporary.iterdir())

    def editor(self, name, body):
        """Returns the path of an editor: a shell script that is called with the file."""
        path = self.services.folder / name
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)
        return str(path)


@pytest.fixture
def runner(services):
    return Runner(services)


def write(services, *documents, name="file.yaml"):
    path = services.folder / name
    path.write_text(several(*documents))
    return path


def test_diff_prints_what_apply_would_change(services, runner):
    one = document("a", replicas=0)
    path = write(services, one)
    added = runner.carve("diff", "-f", path, status=1).stdout
    assert "+++ applied/service.default.a.yaml" in added and "\n+kind: Service\n" in added and "\n-" not in added.replace("\n---", "")
    services.apply(one)
    assert (runner.carve("diff", "-f", path).stdout, services.service("a")["spec"]["replicas"]) == ("", 0)
    one["spec"]["terminationGracePeriodSeconds"] = 7
    changed = runner.carve("diff", "-f", write(services, one, document("b")), status=1)
    lines = [line for line in changed.stdout.splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")]
    assert [line for line in lines if "terminationGracePeriodSeconds" in line][0].startswith("-") and "+  terminationGracePeriodSeconds: 7" in lines, lines
    assert "+++ applied/service.default.b.yaml" in changed.stdout
    assert "resourceVersion" not in changed.stdout and "status:" not in changed.stdout
    assert services.service("a")["spec"]["terminationGracePeriodSeconds"] != 7, "nothing is stored"
    assert runner.remains() == []


def test_diff_distinguishes_errors_from_differences(services, runner):
    folder = services.folder / "of-diff"
    folder.mkdir(exist_ok=True)
    (folder / "1.yaml").write_text("kind: Nonsense\n")
    (folder / "2.yaml").write_text(several(document("a")))
    both = runner.carve("diff", "-f", folder, status=2)
    assert f"carve: {folder}/1.yaml: " in both.stderr and "+++ applied/service.default.a.yaml" in both.stdout
    assert "/nonexistent: cannot be read" in runner.carve("diff", "-f", "/nonexistent", status=2).stderr
    path = folder / "2.yaml"
    assert runner.carve("diff", "-f", path, status=1, CARVE_EXTERNAL_DIFF="echo compared").stdout == "compared stored applied\n"
    assert runner.carve("diff", "-f", path, status=1, CARVE_EXTERNAL_DIFF="ls -d").stdout == "applied\nstored\n"
    for failing in ("/nonexistent/diff", "exit 5;"):
        assert "names another program" in runner.carve("diff", "-f", path, status=2, CARVE_EXTERNAL_DIFF=failing).stderr
    services.apply(several(document("a")))
    assert runner.carve("diff", "-f", path, CARVE_EXTERNAL_DIFF="/nonexistent/diff").stderr == "", "it is not needed"
    assert runner.remains() == []


def test_edit_stores_what_the_editor_changes(services, runner):
    script = document("a", labels={"app": "web", "tier": "x"})
    script["spec"]["run"]["command"] = ["sh", "-c", "set -e\nexec sleep 1000\n"]
    services.apply(script)
    editor = runner.editor("editor", "cp \"$1\" \"$1.seen\" && mv \"$1.seen\" " + str(services.folder / "seen") + " && sed -i -e 's/terminationGracePeriodSeconds: .*/terminationGracePeriodSeconds: 9/' -e '/tier:/d' \"$1\"")
    before = services.service("a")
    assert runner.carve("edit", "service/a", EDITOR=editor, CARVE_EDITOR="").stdout == "service/a edited\n"
    seen = (services.folder / "seen").read_text()
    assert seen.startswith("# Change service/a, ") and "\nkind: Service\n" in seen and "resourceVersion" not in seen and "status:" not in seen
    assert "        set -e\n        exec sleep 1000\n" in seen, "lines of a script are lines in the editor"
    now = services.service("a")
    assert now["spec"] == {**before["spec"], "terminationGracePeriodSeconds": 9} and now["metadata"]["labels"] == {"app": "web"}
    assert now["metadata"]["uid"] == before["metadata"]["uid"]
    unchanged = runner.carve("edit", "service", "a", CARVE_EDITOR="touch", EDITOR="false")
    assert (unchanged.stdout, unchanged.stderr) == ("", "edit cancelled, no changes made\n")
    assert "edit cancelled, no changes made" in runner.carve("edit", "service/a", EDITOR="truncate -s 0").stderr
    assert services.service("a")["metadata"]["resourceVersion"] == now["metadata"]["resourceVersion"]
    assert runner.remains() == []


def test_edit_opens_a_rejected_text_again_with_the_reason(services, runner):
    services.apply(document("a"))
    # The first change is not YAML, the second has an unknown field, and the third is valid.
    count = services.folder / "count"
    editor = runner.editor("editor", f"""echo >> {count}
        cp "$1" {services.folder}/text-$(wc -l < {count})
        case $(wc -l < {count}) in
        1) echo '  - [' >> "$1" ;;
        2) sed -i -e '/  - \\[/d' -e 's/^spec:/spec:\\n  replcas: 5/' "$1" ;;
        3) sed -i 's/  replcas: 5/  terminationGracePeriodSeconds: 5/;/^  terminationGracePeriodSeconds: [^5]/d' "$1" ;;
        esac""")
    assert runner.carve("edit", "service/a", EDITOR=editor).stdout == "service/a edited\n"
    second, third = ((services.folder / f"text-{n}").read_text() for n in (2, 3))
    assert "# The last change was rejected:\n# line " in second and "\n  - [\n" in second
    assert "# The last change was rejected:\n# " in third and "replcas" in third.split("\nkind:")[0] and third.count("# Change service/a") == 1
    assert services.service("a")["spec"]["terminationGracePeriodSeconds"] == 5
    count.unlink()
    kept = runner.carve("edit", "service/a", status=1, EDITOR=runner.editor("wrong", "sed -i 's/^spec:/spec:\\n  replcas: 5/;/replcas/{n;/replcas/d}' \"$1\""))
    assert "carve: edit cancelled, because the text is still rejected; it is in " in kept.stderr
    path = pathlib.Path(kept.stderr.split(" is in ")[1].strip())
    assert "  replcas: 5\n" in path.read_text() and path.stat().st_mode & 0o077 == 0
    assert runner.remains() == [path.name]


def test_edit_does_not_overwrite_the_change_of_another_program(services, runner):
    services.apply(document("a"))
    other = services.folder / "other.yaml"
    other.write_text(several(document("a", labels={"by": "another"})))
    editor = runner.editor("editor", f"{services.agent.build}/bin/carve apply -f {other} > /dev/null; sed -i 's/terminationGracePeriodSeconds: .*/terminationGracePeriodSeconds: 9/' \"$1\"")
    stale = runner.carve("edit", "service/a", status=1, EDITOR=editor)
    assert "carve: service/a was changed by another program in the meantime; your text is in " in stale.stderr
    assert services.service("a")["metadata"]["labels"] == {"by": "another"} and services.service("a")["spec"]["terminationGracePeriodSeconds"] != 9
    assert len(runner.remains()) == 1


def test_edit_reports_an_editor_that_fails_and_an_object_that_does_not_exist(services, runner):
    services.apply(document("a"))
    assert "the editor 'false' failed with status 1; the text is in " in runner.carve("edit", "service/a", status=1, EDITOR="false").stderr
    assert "carve: there is no service b" in runner.carve("edit", "service/b", status=1, EDITOR="false").stderr
    assert "change one with carve set" in runner.carve("edit", "slice/a", status=2).stderr
    assert "no object is given" in runner.carve("edit", "services", status=2).stderr


def test_other_kinds_are_edited_too(services, runner):
    services.apply({"apiVersion": "carve.dev/v1", "kind": "Queue", "metadata": {"name": "q"}, "spec": {}})
    editor = "sed -i 's/^metadata:/metadata:\\n  labels: {team: red}/;/^  labels: {}/d'"
    assert runner.carve("edit", "queue/q", EDITOR=editor).stdout == "queue/q edited\n"
    assert services.service("q", "queue")["metadata"]["labels"] == {"team": "red"}
    node = json.loads(services.carve("get", "nodes", "-o", "json"))["items"][0]["metadata"]["name"]
    assert runner.carve("edit", f"node/{node}", EDITOR=editor.replace("team", "rack")).stdout == f"node/{node} edited\n"
    assert services.service(node, "node")["metadata"]["labels"]["rack"] == "red"
    services.carve("delete", "queue/q")


def test_the_document_of_a_revision_is_printed_and_can_be_applied(services, runner):
    one = document("a", replicas=1)
    services.apply(one, "--wait")
    one["spec"]["run"]["command"] = ["sleep", "1001"]
    services.apply(one, "--wait")
    first = services.carve("rollout", "history", "service/a", "--revision", "1")
    assert "echo begun" in first and "status:" not in first and "resourceVersion" not in first
    assert json.loads(services.carve("rollout", "history", "service/a", "--revision", "2", "-o", "json"))["spec"]["run"]["command"] == ["sleep", "1001"]
    assert "service a has no revision 3; it has 1, 2" in services.carve("rollout", "history", "service/a", "--revision", "3", status=1)
    assert services.apply(first) == "service/a configured\n"
    assert "exec sleep 1000" in services.service("a")["spec"]["run"]["command"][-1]
