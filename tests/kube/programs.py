"""Kills programs of a test's cluster that up.sh started, and restarts them with their own arguments."""
import os
import pathlib
import signal
import subprocess
import time


def is_ended(pid):
    """Returns whether there is no such process, or only a zombie that its parent has not waited for."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] in "ZX"
    except OSError:
        return True


class Programs:
    """`folder` is up.sh's KUBE_DIR. `path` lists folders with programs that are searched before the
    others."""

    def __init__(self, folder, path):
        self.folder = pathlib.Path(folder)
        self.environment = {**os.environ, "PATH": f"{path}:{os.environ['PATH']}"}
        self.words = {}
        self.children = []  # Kept so that they can be waited for.

    def pid(self, name):
        return int((self.folder / "pid" / name).read_text())

    def kill(self, name):
        pid = self.pid(name)
        assert not is_ended(pid), f"{name} has ended: " + (self.folder / "log" / name).read_text()[-2000:]
        self.words[name] = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[:-1]
        os.kill(pid, signal.SIGKILL)
        end = time.monotonic() + 30
        while not is_ended(pid):
            assert time.monotonic() < end, f"{name} does not end"
            time.sleep(0.02)
        self.children = [child for child in self.children if child.poll() is None]

    def start(self, name):
        with open(self.folder / "log" / name, "ab") as log:
            process = subprocess.Popen(self.words[name], stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=self.environment,
                                       start_new_session=True)
        (self.folder / "pid" / name).write_text(f"{process.pid}\n")
        self.children.append(process)

    def start_what_ended(self):
        """Restarts what has ended, as systemd would, because a kubelet ends without a container runtime, and
        an API server without etcd. Only restarts programs that were killed once."""
        for name in self.words:
            if is_ended(self.pid(name)):
                self.start(name)
