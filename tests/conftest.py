"""Fixtures for tests that run real programs: every test gets its own agent (support/agent.py)."""
import os
import pathlib
import signal
import sys

import pytest

from support import network
from support.agent import BUILD, Agent, until  # Tests import them from here.
from support.jobs import Jobs
from support.services import Services

HERE = pathlib.Path(__file__).resolve().parent
# The tests in these folders need what their `run` script builds. (A conftest.py in a folder would have the
# name of this module.)
collect_ignore = [folder for folder, variable in {"kube": "CARVE_KUBE", "nvidia": "CARVE_NVIDIA", "monitoring": "CARVE_MONITORING"}.items() if not os.environ.get(variable)]
# For tests that look up many of the driver's entry points: the simulated driver with all names, and the
# oldest and newest of those that tests/nvidia compares with NVIDIA's (docs/simulator.md). The agent needs
# driver 510; tests/guest runs programs over driver 470.
SIMULATED_DRIVERS = {"all": "a10x2", "525": "a10x2@525", "550": "a10x2@550"}
over_drivers = pytest.mark.parametrize("driver", [pytest.param(name, marks=pytest.mark.devices(spec))
                                                  for name, spec in SIMULATED_DRIVERS.items()])
long_form = bool(os.environ.get("CARVE_LONG"))
LONGEST_CASE = 3600 if long_form else 300  # In seconds.
GiB = 1 << 30
MiB = 1 << 20


@pytest.fixture
def world(request):
    mark = request.node.get_closest_marker("devices")
    w = Agent(*(mark.args if mark else ("a10x2",)))
    yield w
    log = (w.folder / "log").read_text()
    w.end()
    report = getattr(request.node, "report", None)
    if report is None or report.failed:
        print("--- the agent's log:\n" + log[-4000:])


@pytest.fixture(scope="module")
def shared_world():
    """One agent with two A10 for all tests of a file, which must leave nothing behind."""
    agent = Agent("a10x2")
    yield agent
    agent.end()


@pytest.fixture
def second():
    """An agent next to `world`, with one T4."""
    agent = Agent("t4x1")
    yield agent
    agent.end()


def running(controller, agent):
    """A controller whose only node is the agent, for one test."""
    controller.agent = agent
    yield controller
    print("--- the controller's log:\n" + controller.log()[-20000:])
    controller.end()


@pytest.fixture
def services(world):
    yield from running(Services({"n1": world}), world)


@pytest.fixture
def jobs(world):
    yield from running(Jobs({"n1": world}), world)


@pytest.fixture(scope="module")
def own_network():
    """Gives the module's tests their own ports, because two controllers that choose at the same moment may
    choose the same port."""
    with network.own_network():
        yield


@pytest.fixture(autouse=True)
def in_time():
    """Makes a test that hangs fail and report where, instead of blocking all others."""
    def late(*_):
        raise TimeoutError(f"the case took more than {LONGEST_CASE} s")
    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(LONGEST_CASE)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    if call.when == "call":
        item.report = outcome.get_result()


def pytest_configure(config):
    config.addinivalue_line("markers", "devices(spec, *arguments): what the case's agent is started with")
    config.addinivalue_line("markers", "alone: measures shares or times on the real clock; nothing may run beside it")


LOAD = BUILD / "bin/carve-load"


def program_of(text):
    """Returns a short program that can use everything in driver.py."""
    return [sys.executable, "-c", "from driver import *\n" + text]


@pytest.fixture
def inside(world):
    """inside(TEXT, slice options): runs the Python text in a slice and returns its output. A failed assertion
    in it fails the test."""
    def run(text, *options, memory="2GiB", status=0, env=None):
        done = world.carve("run", "--memory", memory, *options, "--", *program_of(text), env={"PYTHONPATH": str(HERE), **(env or {})},
                           timeout=120)
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout
    return run


@pytest.fixture
def beside(world):
    """The same, but leaves the program running."""
    def begin(text, *options, name="beside", memory="2GiB"):
        return world.begin("run", "--memory", memory, "--name", name, *options, "--", *program_of(text), env={"PYTHONPATH": str(HERE)})
    return begin
