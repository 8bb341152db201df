"""Tests contexts: `carve` on one machine uses the controller of another over TLS, with a token. The certificates are made
by openssl."""
import json
import os
import re
import shutil
import socket
import subprocess

import pytest

from conftest import BUILD, Agent
from support.agent import until
from support.controller import Controller

pytestmark = pytest.mark.skipif(not shutil.which("openssl"), reason="openssl is not installed")


def openssl(*words, **options):
    done = subprocess.run(["openssl", *map(str, words)], capture_output=True, text=True, **options)
    assert done.returncode == 0, done.stderr


def make_ca(folder):
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=test CA", "-days", "2",
            "-keyout", folder / "ca.key", "-out", folder / "ca.pem")


def make_certificate(folder, name, *, hosts, dates=()):
    """Makes NAME.pem and NAME.key, signed by the CA; `dates` are the options of `openssl ca` for its validity."""
    (folder / "index.txt").write_text("")
    (folder / "serial").write_text("01\n")
    (folder / "ca.conf").write_text(
        f"[ca]\ndefault_ca=d\n[d]\ndatabase={folder}/index.txt\nserial={folder}/serial\nnew_certs_dir={folder}\ndefault_md=sha256\n"
        f"policy=p\nx509_extensions=e\n[p]\ncommonName=supplied\n[e]\nsubjectAltName={hosts}\n")
    openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={name}",
            "-keyout", folder / f"{name}.key", "-out", folder / f"{name}.csr")
    openssl("ca", "-batch", "-notext", "-config", folder / "ca.conf", "-cert", folder / "ca.pem", "-keyfile", folder / "ca.key",
            "-in", folder / f"{name}.csr", "-out", folder / f"{name}.pem", *(dates or ("-days", "2")))
    return folder / f"{name}.pem", folder / f"{name}.key"


class Away:
    """A controller with TLS, and a user whose commands know only its address."""

    def __init__(self, folder, agent, certificate, key, listen="127.0.0.1:0", before=()):
        self.folder = folder
        self.controller = Controller({"n": agent}, "--listen", listen, "--tls-cert", certificate, "--tls-key", key, before=before)
        self.port = int(re.search(r"https://[^ ]*:(\d+)", self.controller.log()).group(1))
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "CARVE_SOCKET": "/nonexistent/s"}

    def carve(self, *words, before=(), **variables):
        return subprocess.run([*before, BUILD / "bin/carve", *map(str, words)], env={**self.environment, **variables},
                              capture_output=True, text=True, timeout=60)

    def token(self, role):
        done = subprocess.run([BUILD / "bin/carve", "--controller", self.controller.socket, "token", "create", role, "--role", role,
                               "--account", "root"], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        file = self.folder / f"{role}.token"
        file.write_text(done.stdout)
        return file


@pytest.fixture(scope="module")
def agent():
    agent = Agent("a10x1")
    yield agent
    agent.end()


@pytest.fixture
def away(tmp_path, agent):
    make_ca(tmp_path)
    away = Away(tmp_path, agent, *make_certificate(tmp_path, "good", hosts="DNS:localhost,IP:127.0.0.1"))
    yield away
    away.controller.end()


def test_a_context_reaches_the_controller_with_its_token(away):
    file = away.folder / ".config/carve/contexts.json"
    for role in ("viewer", "operator"):
        done = away.carve("context", "add", role, "--server", f"https://localhost:{away.port}", "--token-file", away.token(role),
                          "--ca", away.folder / "ca.pem")
        assert done.returncode == 0, done.stderr
    assert file.stat().st_mode & 0o777 == 0o600 and file.parent.stat().st_mode & 0o077 == 0
    assert away.carve("context", "use", "viewer").returncode == 0
    nodes = away.carve("get", "nodes")
    assert nodes.returncode == 0 and "n " in nodes.stdout, nodes.stderr
    assert json.loads(away.carve("whoami", "-o", "json").stdout)["controller"]["role"] == "viewer"
    assert away.carve("auth", "can-i", "apply", "queues").returncode == 1
    assert away.carve("--context", "operator", "auth", "can-i", "apply", "queues").returncode == 0
    listed = away.carve("context", "list").stdout
    assert re.search(r"^\* +viewer +https://localhost", listed, re.M) and "ca." not in listed, listed
    assert away.carve("context", "delete", "viewer").returncode == 0
    assert "viewer" not in file.read_text()
    assert "there is no context 'viewer'; the contexts are operator" in away.carve("--context", "viewer", "get", "nodes").stderr
    local = away.carve("get", "nodes")
    assert local.returncode == 1 and "no controller listens at" in local.stderr, "without a context, the machine's own"


def test_variables_reach_the_controller_without_a_context(away):
    token = away.token("viewer").read_text().strip()
    url = f"https://127.0.0.1:{away.port}"
    assert away.carve("get", "nodes", CARVE_CONTROLLER=url, CARVE_TOKEN=token, CARVE_CA=str(away.folder / "ca.pem")).returncode == 0
    without = away.carve("get", "nodes", CARVE_CONTROLLER=url, CARVE_CA=str(away.folder / "ca.pem"))
    assert without.returncode == 1 and "token" in without.stderr
    wrong = away.carve("get", "nodes", CARVE_CONTROLLER=url, CARVE_TOKEN="wrong", CARVE_CA=str(away.folder / "ca.pem"))
    assert wrong.returncode == 1 and "token" in wrong.stderr
    split = away.carve("get", "nodes", CARVE_CONTROLLER=url, CARVE_TOKEN="a\nX: 1", CARVE_CA=str(away.folder / "ca.pem"))
    assert split.returncode == 2 and "the token contains a blank or a control character" in split.stderr
    for address in ("https://", "https://a:0", "https://a/b"):
        done = away.carve("get", "nodes", CARVE_CONTROLLER=address)
        assert done.returncode == 2 and "use https://HOST:PORT" in done.stderr


def test_certificate_errors_are_explained(tmp_path, agent):
    make_ca(tmp_path)
    past = ("-startdate", "20200101000000Z", "-enddate", "20200102000000Z")
    cases = (("expired", "DNS:localhost", past, "has expired", tmp_path / "ca.pem"),
             ("other", "DNS:gpu.example", (), "is for another name than 'localhost'", tmp_path / "ca.pem"),
             ("unknown", "DNS:localhost", (), "CA that this machine does not know; give the CA's certificate with --ca FILE", None))
    for name, hosts, dates, message, ca in cases:
        away = Away(tmp_path, agent, *make_certificate(tmp_path, name, hosts=hosts, dates=dates))
        try:
            variables = {"CARVE_CONTROLLER": f"https://localhost:{away.port}", "CARVE_TOKEN": "secret"}
            done = away.carve("get", "nodes", **variables, **({"CARVE_CA": str(ca)} if ca else {}))
            assert done.returncode == 1 and message in done.stderr, done.stderr
        finally:
            away.controller.end()


def test_another_server_is_not_trusted_and_gets_no_token(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"https://127.0.0.1:{server.getsockname()[1]}"
        program = subprocess.Popen([BUILD / "bin/carve", "get", "nodes"], stderr=subprocess.PIPE, text=True,
                                   env={"HOME": str(tmp_path), "CARVE_CONTROLLER": url, "CARVE_TOKEN": "very-secret"})
        connection, _ = server.accept()
        with connection:
            hello = connection.recv(1 << 16)
            connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        assert b"very-secret" not in hello
        assert "does not speak TLS" in program.communicate(timeout=60)[1] and program.returncode == 1


def test_a_file_that_others_may_read_is_rejected(tmp_path):
    folder = tmp_path / ".config/carve"
    folder.mkdir(parents=True)
    file = folder / "contexts.json"
    run = lambda: subprocess.run([BUILD / "bin/carve", "context", "list"], env={"HOME": str(tmp_path)}, capture_output=True, text=True)
    file.write_text('{"current":"","contexts":[]}')
    file.chmod(0o644)
    assert run().returncode == 1 and "chmod 600" in run().stderr
    file.chmod(0o600)
    assert run().returncode == 0
    for text in ("{", '{"contexts":[{"name":1}]}', "\0" * 100):
        file.write_text(text)
        assert run().returncode == 1 and "remove the file" in run().stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes network namespaces")
def test_a_user_in_another_network_namespace(tmp_path, agent):
    names = [f"cv{os.getpid()}{side}" for side in "ab"]
    ip = lambda *words: subprocess.run(["ip", *words], capture_output=True, text=True)
    if not shutil.which("ip") or ip("netns", "add", names[0]).returncode != 0:
        pytest.skip("network namespaces are not permitted here")
    try:
        ip("netns", "add", names[1])
        made = ip("link", "add", names[0], "netns", names[0], "type", "veth", "peer", "name", names[1], "netns", names[1])
        if made.returncode != 0:
            pytest.skip(f"no pair of network devices: {made.stderr}")
        for name, address in zip(names, ("10.99.0.1/24", "10.99.0.2/24")):
            for words in (("addr", "add", address, "dev", name), ("link", "set", name, "up"), ("link", "set", "lo", "up")):
                assert ip("-n", name, *words).returncode == 0
        make_ca(tmp_path)
        certificate = make_certificate(tmp_path, "good", hosts="IP:10.99.0.1")
        away = Away(tmp_path, agent, *certificate, listen="10.99.0.1:0", before=("ip", "netns", "exec", names[0]))
        try:
            away.carve("context", "add", "lab", "--server", f"https://10.99.0.1:{away.port}", "--token-file", away.token("viewer"),
                       "--ca", tmp_path / "ca.pem")
            reached = away.carve("--context", "lab", "get", "nodes", before=("ip", "netns", "exec", names[1]))
            assert reached.returncode == 0 and "n " in reached.stdout, reached.stderr
            assert away.carve("--context", "lab", "get", "nodes", before=("ip", "netns", "exec", names[1]), CARVE_CA="/x").returncode == 0
        finally:
            away.controller.end()
    finally:
        for name in names:
            ip("netns", "delete", name)
