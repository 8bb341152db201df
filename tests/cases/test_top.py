"""The interactive `carve top` on a terminal of pyte, an emulator in Python (of the Linux console)."""
import fcntl
import os
import pty
import select
import signal
import struct
import termios

import pytest

from conftest import BUILD, LOAD, until

pyte = pytest.importorskip("pyte", reason="comes from PyPI")

DOWN, ESCAPE = b"\x1b[B", b"\x1b"


class Terminal:
    """`carve top` with its keyboard and its screen."""

    def __init__(self, world, columns=80, rows=24, words=("top", "-d", "0.1"), **environment):
        self.pid, self.descriptor = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            os.execve(BUILD / "bin/carve", ["carve", *words], {**world.environment, "TERM": "linux", "LC_ALL": "C.UTF-8", **environment})
        self.screen = pyte.Screen(columns, rows)
        self.stream = pyte.ByteStream(self.screen)
        self.status = None

    def read(self):
        """Draws what `carve top` has printed so far."""
        while select.select([self.descriptor], [], [], 0)[0]:
            try:
                data = os.read(self.descriptor, 65536)
            except OSError:  # The program has ended.
                break
            if not data:
                break
            self.stream.feed(data)
        return self.screen.display

    def becomes(self, true, seconds=20):
        """Waits until `true` holds for the screen's lines."""
        assert until(lambda: true(self.read()), seconds), "\n".join(self.screen.display)

    def shows(self, *texts):
        self.becomes(lambda lines: all(any(text in line for line in lines) for text in texts))

    def lacks(self, text):
        self.becomes(lambda lines: not any(text in line for line in lines))

    def press(self, keys):
        os.write(self.descriptor, keys if isinstance(keys, bytes) else keys.encode())

    def resize(self, columns, rows):
        fcntl.ioctl(self.descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.screen.resize(rows, columns)

    def ended(self):
        def has_ended():
            self.read()
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
            return pid != 0
        self.becomes(lambda lines: has_ended())
        return self.status

    def close(self):
        if self.status is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.descriptor)


@pytest.fixture
def terminal(world):
    opened = []

    def open_terminal(*arguments, **options):
        opened.append(Terminal(world, *arguments, **options))
        return opened[-1]
    yield open_terminal
    for one in opened:
        one.close()


@pytest.fixture
def two(world):
    for name, memory in (("small", "1GiB"), ("large", "3GiB")):
        done = world.carve("run", "-d", "--memory", memory, "--name", name, "--", LOAD, "--allocate", "512MiB", "--no-touch", "--seconds", "600")
        assert done.returncode == 0, done.stderr
        world.attached(name)


def before(lines, first, second):
    """Whether a line that begins with `first` is above one that begins with `second`."""
    starts = [line.split(" ")[0] for line in lines]
    return first in starts and second in starts and starts.index(first) < starts.index(second)


def test_it_sorts_filters_and_quits(world, two, terminal):
    top = terminal()
    top.shows("small", "large", "q quit", "MEM[", "GPU[")
    top.press("N")
    top.becomes(lambda lines: before(lines, "large", "small"))
    top.press("r")
    top.becomes(lambda lines: before(lines, "small", "large"))
    top.press("/lar")
    top.shows("Filter: lar_", "large")
    top.lacks("small ")
    top.press(ESCAPE)
    top.shows("small", "q quit")
    top.press("q")
    assert top.ended() == 0


def test_it_shows_the_processes_and_stops_a_slice_after_a_question(world, two, terminal):
    top = terminal()
    top.shows("small")
    pid = str(world.show("small")["processes"][0]["pid"])
    top.press("t")
    top.shows(pid)
    top.press("N")
    top.press(DOWN + DOWN)
    top.shows("small: running")
    top.press("s")
    top.shows("Stop slice small and all of its processes? y/N")
    top.press("n")
    top.shows("slice small was not stopped")
    assert world.slices()["small"]["state"] == "running"
    top.press("s")
    top.shows("Stop slice small")
    top.press("y")
    top.lacks(" of 1 GiB")
    assert until(lambda: "small" not in world.slices())
    assert world.slices()["large"]["state"] == "running"


def test_it_changes_a_slice_and_shows_why_not(world, two, terminal):
    top = terminal()
    top.press("N" + "j")
    top.shows("large: running")
    top.press("e")
    top.shows("New memory and share of large")
    top.press("2GiB\r")
    top.shows("Change slice large to memory 2 GiB? y/N")
    top.press("y")
    top.shows(" of 2 GiB")
    top.press("e")
    top.press("1MiB\r")
    top.shows("Change slice large to memory 1 MiB? y/N")
    top.press("y")
    top.shows("1 MiB is less than")  # The agent's reason.
    top.press("e")
    top.press("much\r")
    top.shows("'much'")
    top.press(ESCAPE)
    top.shows("q quit")


def test_it_follows_the_size_of_the_terminal(world, two, terminal):
    top = terminal(80, 24)
    top.shows("q quit")
    assert not any("COMMAND" in line for line in top.read())
    top.resize(200, 60)
    top.shows("COMMAND", "--no-touch", "THROTTLED")
    assert "q quit" in top.read()[59]


@pytest.mark.parametrize("environment", [{"LC_ALL": "C"}, {"NO_COLOR": ""}, {"TERM": "vt100"}])
def test_it_works_on_other_terminals(world, two, terminal, environment):
    top = terminal(**environment)
    top.shows("small", "MEM[", "q quit")
    if "NO_COLOR" in environment:
        top.becomes(lambda lines: any(cell.fg != "default" for row in top.screen.buffer.values() for cell in row.values()))
    if "LC_ALL" in environment:
        assert all(ord(c) < 128 for line in top.read() for c in line)


def test_an_unknown_terminal_gets_one_picture(world, two, terminal):
    top = terminal(TERM="no-such-terminal")
    assert top.ended() == 0
    assert any("small" in line for line in top.read())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_and_restores_the_terminal(world, two, terminal, number):
    top = terminal()
    before = termios.tcgetattr(top.descriptor)
    top.shows("q quit")
    os.kill(top.pid, number)
    assert top.ended() == 0
    assert termios.tcgetattr(top.descriptor)[3] == before[3] | termios.ICANON | termios.ECHO


def test_it_survives_a_restart_of_the_agent(world, two, terminal):
    top = terminal()
    top.shows("small")
    world.process.kill()
    world.process.wait()
    top.shows("carve")  # Still drawn.
    top.becomes(lambda lines: "q quit" not in lines[-1] and "carved" in lines[-1])
    top.press("/small")  # Keys are answered meanwhile.
    top.shows("Filter: small_")
    top.press("\r")
    world.start()
    top.shows("filter 'small': 1", "q quit")


def test_a_number_of_rounds_ends_it(world, two, terminal):
    assert terminal(words=("top", "-d", "0.1", "-n", "3")).ended() == 0
