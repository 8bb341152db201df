"""`carve apply`, `explain`, `render` and `delete` with several files, folders and standard input."""
import json
import shutil
import socketserver
import subprocess
import threading

import pytest

from test_object_verbs import document, several

pytestmark = [
    pytest.mark.usefixtures("own_network"),
    pytest.mark.skipif(shutil.which("haproxy") is None, reason="haproxy is not installed: apt-get install haproxy"),
]


@pytest.fixture
def folder(services):
    path = services.folder / "documents"
    shutil.rmtree(path, ignore_errors=True)
    (path / "inner").mkdir(parents=True)
    return path


def write(path, *documents):
    path.write_text(several(*documents))


def with_input(services, text, *words):
    done = subprocess.run([services.agent.build / "bin/carve", *words], input=text, capture_output=True, text=True, timeout=120,
                          env={**services.agent.environment, "CARVE_CONTROLLER": str(services.socket)})
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_documents_of_a_folder_are_applied_and_deleted(services, folder):
    write(folder / "2.json", document("b"))
    write(folder / "1.yaml", document("a"))
    write(folder / "inner/3.yml", document("c"))
    (folder / "README.md").write_text("not a document")
    assert services.carve("apply", "-f", folder) == "service/a created\nservice/b created\n"
    assert services.carve("apply", "-R", "-f", folder) == "service/a unchanged\nservice/b unchanged\nservice/c created\n"
    assert services.carve("delete", "-R", "-f", folder) == "service/c deleted\nservice/b deleted\nservice/a deleted\n"
    assert services.items() == []


def test_several_files_and_standard_input_are_read_in_their_order(services, folder):
    write(folder / "a.yaml", document("a"))
    write(folder / "b.txt", document("b"))
    stdin = several(document("c"), document("d"))
    assert with_input(services, stdin, "apply", "-f", folder / "b.txt", "-f", "-", "-f", folder) == \
        "service/b created\nservice/c created\nservice/d created\nservice/a created\n"
    assert "-f - is given twice" in services.carve("apply", "-f", "-", "-f", "-", status=1)
    listed = json.loads(services.carve("apply", "-f", folder / "a.yaml", "-f", folder / "b.txt", "-o", "json"))
    assert [(item["name"], item["action"]) for item in listed["items"]] == [("a", "unchanged"), ("b", "unchanged")]
    assert services.carve("explain", "-f", folder / "b.txt", "-f", folder) == "service/b\nservice/a\n"
    assert with_input(services, stdin, "delete", "-f", "-", "-f", folder) == "service/a deleted\nservice/d deleted\nservice/c deleted\n"
    services.carve("delete", "service/b")


def test_a_rejected_file_does_not_prevent_the_others_and_is_named(services, folder):
    write(folder / "1.yaml", document("a"), {**document("b"), "spec": {"replcas": 1}})
    (folder / "2.yaml").write_text("{")
    write(folder / "3.yaml", document("c"))
    out = services.carve("apply", "-f", folder, status=1)
    assert f"carve: {folder}/1.yaml: " in out and "document 2: " in out and "replcas" in out
    assert f"carve: {folder}/2.yaml: " in out
    assert "service/c created\n" in out
    assert services.items() == [("services", "c")], "no document of a rejected file is applied"
    assert f"carve: {folder}/1.yaml: " in services.carve("delete", "-f", folder, status=1)
    assert services.items() == [("services", "c")], "nothing is deleted if a file is invalid"
    assert "the folder has no files *.json, *.yaml or *.yml; -R" in services.carve("apply", "-f", folder / "inner", status=1)
    services.carve("delete", "service/c")


def test_the_manifests_of_several_files_are_separate_documents(services, folder):
    pod = document("web", replicas=1)
    pod["spec"]["run"]["image"] = "example.com/web"
    write(folder / "1.yaml", pod)
    write(folder / "2.yaml", {**pod, "metadata": {"name": "api"}})
    rendered = services.carve("render", "-f", folder)
    assert rendered.count("kind: \"Deployment\"") + rendered.count("kind: Deployment") == 2
    assert "\n---\n" in rendered


def test_delete_with_a_selector_reports_a_list_that_it_cannot_read(services):
    """The controller returns a list whose objects have names that are numbers."""
    class Answer(socketserver.StreamRequestHandler):
        def handle(self):
            while self.rfile.readline().strip():
                pass
            body = b'{"items":[{"metadata":{"name":5}}],"metadata":{}}'
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))

    path = services.folder / "list.sock"
    with socketserver.ThreadingUnixStreamServer(str(path), Answer) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        said = services.carve("--controller", path, "delete", "services", "-l", "app=web", status=1)
        server.shutdown()
        thread.join()
    assert "cannot read the controller's response" in said and "No objects match" not in said
