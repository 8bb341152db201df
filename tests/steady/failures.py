"""A pytest plugin that writes each failed test as one line of JSON to $CARVE_FAILED_TESTS: its id and
pytest's output for it."""
import json
import os


class FailureWriter:
    def __init__(self, path):
        self.path = path

    def pytest_runtest_logreport(self, report):
        if report.failed:
            shown = [report.longreprtext] + [f"--- {name}\n{text}" for name, text in report.sections]
            with open(self.path, "a") as out:
                out.write(json.dumps({"test": report.nodeid, "log": "\n".join(shown)}) + "\n")


def pytest_configure(config):
    if not hasattr(config, "workerinput"):  # Workers of pytest-xdist send their reports to the main process.
        config.pluginmanager.register(FailureWriter(os.environ["CARVE_FAILED_TESTS"]))
