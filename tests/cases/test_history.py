"""The history of slices and devices, and who held slices, as users see them."""
import csv
import io
import json
import signal

import pytest

from conftest import HERE, until
from support.over_unix import asked

pytestmark = pytest.mark.usefixtures("own_network")
EXAMPLES = HERE.parent / "examples"


def history(services, *words):
    return json.loads(services.carve("history", *words, "-o", "json"))


def values(services, name, metric):
    """Returns the slice's values of this metric, without the gaps."""
    status, _, text = asked(services.socket, f"/v1/history?object=slice/{name}&metric={metric}")
    if status == 404:
        return []
    assert status == 200, text
    return [value for series in json.loads(text)["series"] for value in series["values"] if value is not None]


def create(world, name, *words):
    assert world.carve("slice", "create", "--name", name, "--memory", "2GiB", *words).returncode == 0


def test_a_slice_has_a_history_after_it_ended_and_after_a_restart(world, services):
    create(world, "a", "--compute", "30%")
    assert until(lambda: values(services, "a", "quota_bytes"), 60, 0.2), services.log()
    shown = history(services, "slice/a", "--metric", "quota_bytes,share_bp,used_bytes")
    assert shown["object"] == "slice/a" and shown["step_seconds"] == 5
    quota, share, _ = shown["series"]
    assert quota["metric"] == "quota_bytes" and set(quota["values"]) == {None, 2 << 30}
    assert set(share["values"]) == {None, 3000}
    table = services.carve("history", "slice/a").splitlines()
    assert table[1].split()[:6] == ["METRIC", "DEVICE", "MIN", "MEAN", "MAX", "LAST"]
    row, = [line.split() for line in table if line.startswith("quota")]
    assert row[1:8] == ["0", "2", "GiB", "2", "GiB", "2", "GiB"]
    rows = list(csv.DictReader(io.StringIO(services.carve("history", "slice/a", "--metric", "share_bp", "-o", "csv"))))
    assert {row["value"] for row in rows} == {"", "3000"} and rows[0]["time"] == shown["from"]
    assert until(lambda: 2 << 30 in history(services, "device/n1/0", "--metric", "granted_bytes")["series"][0]["values"], 60, 0.2)
    assert world.carve("slice", "rm", "a").returncode == 0
    services.process.send_signal(signal.SIGTERM)
    services.process.wait()
    services.start()
    assert set(values(services, "a", "quota_bytes")) == {2 << 30}, "the minute is written at the end"


def test_history_rejects_what_does_not_exist_with_the_allowed_values(services):
    for words, status, message in (
            (("slice/none",), 1, "there is no history of slice/none between"),
            (("device/n1",), 1, "object 'device/n1': must be slice/NAME, slice/NODE/NAME or device/NODE/INDEX"),
            (("slice/a", "--metric", "power"), 1, "metric 'power': a slice must be one of charged_bytes, "),
            (("slice/a", "--step", "7s"), 1, "step '7': must be 5, 10, 15, 20 or 30 seconds"),
            (("slice/a", "--since", "soon"), 2, "'soon' is not a duration")):
        assert message in services.carve("history", *words, status=status), words


def test_a_damaged_history_is_moved_aside_and_the_controller_serves(world, services):
    services.process.send_signal(signal.SIGTERM)
    services.process.wait()
    (services.state / "history.db").write_bytes(b"not a database" * 1000)
    services.start()
    create(world, "a")
    assert until(lambda: values(services, "a", "quota_bytes"), 60, 0.2), services.log()
    assert list(services.state.glob("history.db.corrupt-*"))
    assert "the history database was damaged" in services.log()


def test_usage_shows_who_held_what_with_the_figures_of_the_invoice(world, services):
    services.apply((EXAMPLES / "tariff.yaml").read_text())
    for n in range(3):
        words = ("--memory", "4GiB", "--compute", "10%", "--account", f"team-{n % 2}", "--label", f"env={n}")
        assert world.carve("run", *words, "--", "true").returncode == 0
    create(world, "held", "--account", "team-0")

    def usage(*words):
        return json.loads(services.carve("usage", "-o", "json", *words))
    assert until(lambda: usage()["total"]["ended"] == 3, 60, 0.2), usage()
    # The held slice grows between two reports, so the figures are compared over a period that is over.
    end = usage()["items"][0]["since"]
    period = ("--to", end)
    report, bill = usage(*period), json.loads(services.carve("bill", "-o", "json", *period))
    assert [(item["key"], item["gpu_hours"], item["amount"], item["used_gpu_hours"]) for item in report["items"]] == \
        [(item["key"], item["gpu_hours"], item["amount"], item["used_gpu_hours"]) for item in bill["items"]]
    team = {item["key"]: item for item in usage()["items"]}
    assert (team["team-0"]["begun"], team["team-0"]["ended"], team["team-0"]["held"]) == (3, 2, 1)
    assert (team["team-1"]["begun"], team["team-1"]["held"], team["team-1"]["since"]) == (1, 0, "")
    assert {item["key"] for item in usage("--by", "label:env")["items"]} == {"0", "1", "2", "-"}
    assert [item["key"] for item in usage("--by", "user")["items"]] == ["root"]
    assert [item["key"] for item in json.loads(services.carve("bill", "--by", "user", "-o", "json"))["items"]] == ["root"]
    heading = services.carve("usage").splitlines()[1].split()
    assert heading[:7] == ["ACCOUNT", "BEGUN", "ENDED", "HELD", "GPU-HOURS", "USED", "IDLE"]
    rows = list(csv.DictReader(io.StringIO(services.carve("usage", "-o", "csv"))))
    assert [(row["account"], row["begun"]) for row in rows] == [("team-0", "3"), ("team-1", "1")]
    assert "DAY" in services.carve("usage", "--days")
    devices = {item["key"] for item in usage("--by", "device")["items"]}
    assert devices and devices <= {device["uuid"] for device in world.json("devices")["devices"]}
    assert "by 'colour': must be one of account, " in services.carve("usage", "--by", "colour", status=1)
    assert "step 'week': must be day" in asked(services.socket, "/v1/allocations?step=week")[2]
