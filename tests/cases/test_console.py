"""Tests how browsers sign in to the console and read its files, with a real controller and HTTP. The console's
pages have their own tests in console/."""
import http.client
import json
import os
import subprocess

import pytest

from conftest import until
from support.agent import BUILD
from support.controller import Controller
from test_api import port_of

HOSTILE = ["carve_session_{port}=" + "A" * 4000, "carve_session_{port}=\u00ff", "; ; ;", "a=b; " * 500, "carve_session_{port}=x=y",
           "carve_session_{port}"]


@pytest.fixture
def served(world, tmp_path):
    """A controller that serves a console of two files."""
    folder = tmp_path / "console"
    (folder / "assets").mkdir(parents=True)
    (folder / "index.html").write_text("<title>Carve</title>")
    (folder / "assets/main-12.js").write_text("start()")
    (tmp_path / "secret.txt").write_text("secret")
    (folder / "link.txt").symlink_to(tmp_path / "secret.txt")
    controller = Controller({"n1": world}, "--listen", "127.0.0.1:0", "--console", folder)
    yield controller
    print("--- the controller's log:\n" + controller.log())
    controller.end()


def ask(controller, method, path, body=None, headers=()):
    """Returns the status, the headers and the text of the response over TCP."""
    connection = http.client.HTTPConnection("127.0.0.1", port_of(controller), timeout=60)
    connection.request(method, path, None if body is None else json.dumps(body), dict(headers))
    response = connection.getresponse()
    return response.status, response.headers, response.read().decode()


def carve(controller, *words, status=0):
    done = subprocess.run([str(BUILD / "bin/carve"), *words], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL,
                          env={**os.environ, "CARVE_CONTROLLER": str(controller.socket)})
    assert done.returncode == status, done
    return done.stdout + done.stderr


def code_of(controller):
    address, _, code = carve(controller, "console", "--print").strip().partition("/login?code=")
    assert address == f"http://127.0.0.1:{port_of(controller)}"
    return code


def signed_in(controller):
    """Signs in with a code; returns the headers of the session's requests."""
    status, headers, text = ask(controller, "POST", "/v1/session", {"code": code_of(controller)})
    assert status == 201, text
    assert "HttpOnly; SameSite=Strict; Path=/" in headers["Set-Cookie"]
    return {"Cookie": headers["Set-Cookie"].split(";")[0], "Carve-Page-Key": json.loads(text)["page_key"]}


def test_a_code_signs_a_browser_in_once(served):
    session = signed_in(served)
    status, _, text = ask(served, "GET", "/v1/session", headers=session)
    assert status == 200 and json.loads(text)["role"] == "operator", text
    assert ask(served, "GET", "/v1/nodes", headers=session)[0] == 200
    code = code_of(served)
    assert ask(served, "POST", "/v1/session", {"code": code})[0] == 201
    status, _, text = ask(served, "POST", "/v1/session", {"code": code})
    assert status == 401 and "was already used" in text


def test_a_program_that_only_receives_the_cookie_cannot_use_it(served):
    session = signed_in(served)
    assert ask(served, "GET", "/v1/nodes", headers={"Cookie": session["Cookie"]})[0] == 401
    assert ask(served, "DELETE", "/v1/session", headers={"Cookie": session["Cookie"]})[0] == 401
    foreign = {**session, "Origin": "http://127.0.0.1:20000"}
    assert ask(served, "POST", "/v1/documents", {}, foreign)[0] == 403
    for cookie in HOSTILE:
        wrong = cookie.format(port=port_of(served))
        assert ask(served, "GET", "/v1/nodes", headers={**session, "Cookie": wrong})[0] in (400, 401, 431), cookie[:40]
    assert ask(served, "GET", "/v1/nodes", headers=session)[0] == 200


def test_a_session_outlives_the_controller_and_an_operator_can_end_it(served):
    session = signed_in(served)
    port = port_of(served)
    served.kill()
    served.start()
    assert until(lambda: port_of(served) != port, 20)
    session["Cookie"] = session["Cookie"].replace(str(port), str(port_of(served)))  # The cookie's name contains the port.
    assert ask(served, "GET", "/v1/nodes", headers=session)[0] == 200
    rows = [line.split() for line in carve(served, "token", "ls").splitlines()]
    [name] = [row[0] for row in rows if row[1] == "session"]
    # A stream of the session ends with it.
    stream = http.client.HTTPConnection("127.0.0.1", port_of(served), timeout=60)
    stream.request("GET", "/v1/watch?kinds=services", headers=session)
    lines = stream.getresponse()
    carve(served, "token", "rm", name)
    assert ask(served, "GET", "/v1/nodes", headers=session)[0] == 401
    document = {"apiVersion": "carve.dev/v1", "kind": "Service", "metadata": {"name": "a"},
                "spec": {"stopped": True, "run": {"command": ["true"]}}}
    assert ask(served, "POST", "/v1/documents", document, signed_in(served))[0] == 201
    assert b'"name":"a"' not in lines.read(), "no change is sent after the session has ended"


def test_the_files_of_the_console_are_served_and_no_others(served):
    status, headers, text = ask(served, "GET", "/services/default/demo")
    assert (status, text) == (200, "<title>Carve</title>")
    assert "default-src 'self'" in headers["Content-Security-Policy"] and headers["X-Content-Type-Options"] == "nosniff"
    status, headers, text = ask(served, "GET", "/assets/main-12.js")
    assert (status, text) == (200, "start()") and "immutable" in headers["Cache-Control"]
    for path in ("/link.txt", "/../secret.txt", "/%2e%2e/secret.txt", "/assets/..%2f..%2fsecret.txt", "/.hidden.txt", "/none.js"):
        status, _, text = ask(served, "GET", path)
        assert status == 404 and "secret\n" not in text, path
    assert ask(served, "GET", "/v1/nodes")[0] == 401


def test_a_controller_without_a_console_says_so(world):
    controller = Controller({"n1": world}, "--listen", "127.0.0.1:0", "--console", "none")
    try:
        assert "this controller serves no console" in carve(controller, "console", status=1)
        assert ask(controller, "GET", "/")[0] == 401
    finally:
        controller.end()
    done = subprocess.run([str(BUILD / "bin/carve-controller"), "--console", "/none"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "--console /none: cannot serve the folder /none" in done.stderr, done
