"""Invoices: tariffs, lines of slices that ran, and sums that do not change when the controller and the agent
are killed."""
import csv
import fractions
import io
import json
import time

import pytest

from conftest import HERE, until
from support.over_unix import asked

pytestmark = pytest.mark.usefixtures("own_network")
EXAMPLES = HERE.parent / "examples"


def lines(services, *words):
    return json.loads(services.carve("bill", "--lines", "-o", "json", *words))["lines"]


def ended(services, count):
    """Waits until this many lines have ended, and returns them."""
    assert until(lambda: len([one for one in lines(services) if not one["open"]]) == count, 60, 0.2), services.log()
    return lines(services)


def test_a_slice_costs_what_was_granted_while_it_was_live(world, services):
    services.apply((EXAMPLES / "tariff.yaml").read_text())
    assert "autumn  2026-09-01" in services.carve("get", "tariffs")
    begin = time.time()
    assert world.carve("run", "--memory", "4GiB", "--compute", "30%", "--name", "a", "--", "sleep", "1").returncode == 0
    assert [one["pod"] for one in lines(services)] == ["a"], "an invoice copies what the nodes have first"
    line, = ended(services, 1)
    took = time.time() - begin  # Includes the slice's end, which its agent may notice late.
    assert (line["pod"], line["model"], line["ratio"], line["ratio_by"]) == ("a", "NVIDIA A10", "0.300000", "share")
    assert 1 <= fractions.Fraction(line["seconds"]) <= took + 1  # In whole seconds, rounded up.
    hours = fractions.Fraction(line["seconds"]) / 3600 * 10 * fractions.Fraction(3, 10)
    assert abs(fractions.Fraction(line["gpu_hours"]) - hours) <= fractions.Fraction(1, 1_000_000)
    assert f"max(30/100 = 0.300000, 4096/22731 = 0.180194) = {line['gpu_hours']}" in services.carve("bill", "explain", line["id"])
    heading, shown = services.carve("bill", "--lines").splitlines()
    assert heading.split() == ["LINE", "SLICE", "ACCOUNT", "TIME", "GPU-HOURS", "USED", "AMOUNT"]
    assert shown.split()[:2] == [line["id"], "a"] and line["from"] in shown
    row, = csv.DictReader(io.StringIO(services.carve("bill", "-o", "csv")))
    assert row["gpu_hours"] == line["gpu_hours"] and row["amount"] == line["amount"] and row["open"] == "false"
    assert row["line"] == line["id"], "each row can be explained"
    explained = services.carve("bill", "explain", row["line"])
    assert f"slice      a of account {line['account']}" in explained and f"= {line['amount']} " in explained


def test_an_invoice_can_be_grouped_by_label(world, services):
    for name, label in ("a", "team=red"), ("b", "team=blue"), ("c", "env=test"):
        assert world.carve("run", "--memory", "4GiB", "--name", name, "--label", label, "--", "true").returncode == 0
    services.apply({"apiVersion": "carve.dev/v1", "kind": "Service", "metadata": {"name": "demo", "labels": {"team": "red"}},
                    "spec": {"replicas": 1, "gpu": {"memory": "1GiB"}, "run": {"command": ["sleep", "1000"]}}})
    services.running()
    assert until(lambda: len(lines(services)) == 4, 60, 0.2), lines(services)
    bill = json.loads(services.carve("bill", "--by", "label:team", "-o", "json"))
    assert {(one["key"], one["is_rest"]): one["lines"] for one in bill["items"]} == \
        {("red", False): 2, ("blue", False): 1, ("-", True): 1}
    assert bill["total"]["lines"] == 4
    assert {one["pod"] for one in lines(services, "-l", "team=blue")} == {"b"}
    assert {one["pod"] for one in lines(services, "-l", "team!=red")} == {"b", "c"}
    rows = list(csv.DictReader(io.StringIO(services.carve("bill", "-l", "team", "-o", "csv"))))
    assert len(rows) == 3 and rows[0]["labels"] == "team=red"
    rows = list(csv.DictReader(io.StringIO(services.carve("bill", "--by", "label:team", "-o", "csv"))))
    assert {row["label:team"] for row in rows} == {"red", "blue", "-"}
    assert "'label:': must be" in services.carve("bill", "--by", "label:", status=2)
    assert "labelSelector" in services.carve("bill", "-l", "=", status=1)


def test_sums_can_be_printed_as_csv_and_a_period_includes_its_last_day(world, services):
    services.apply((EXAMPLES / "tariff.yaml").read_text())
    assert world.carve("run", "--memory", "4GiB", "--account", "team", "--", "true").returncode == 0
    line, = ended(services, 1)
    row, = csv.DictReader(io.StringIO(services.carve("bill", "--by", "account", "-o", "csv")))
    assert (row["account"], row["lines"], row["amount"]) == ("team", "1", line["amount"])
    today, month = line["from"][:10], line["from"][:7]
    for words in ("--from", today, "--to", today), ("--month", month):
        assert "team     1 " in services.carve("bill", *words), words
    assert f"{month}-01 to {month}-" in services.carve("bill", "--month", month)
    assert "team" not in services.carve("bill", "--from", today, "--to", f"{today}T00:00:01Z")
    for words, message in ((("--month", "2026-13"), "--month '2026-13': must be a month, such as 2026-11"),
                            (("--month", month, "--to", today), "cannot be used with --from or --to"),
                            (("--from", today, "--to", "2026-13-1"), "2026-13-1")):
        assert message in services.carve("bill", *words, status=2), words


def test_a_line_of_a_rebuilt_ledger_can_be_explained(world, services):
    """Its id contains an @, which is %40 in a path."""
    services.apply((EXAMPLES / "tariff.yaml").read_text())
    assert world.carve("run", "--memory", "4GiB", "--", "true").returncode == 0
    ended(services, 1)
    world.process.kill()
    world.process.wait()
    for file in world.folder.glob("state/ledger.db*"):
        file.unlink()
    world.start()
    assert world.carve("run", "--memory", "4GiB", "--", "true").returncode == 0
    new, = [line["id"] for line in ended(services, 2) if "@" in line["id"]]
    assert "amount" in services.carve("bill", "explain", new)
    assert "there is no" in services.carve("get", "service", "a%2Fb", status=1)


def test_invoices_do_not_change_by_kills_and_equal_the_usage_records(world, services):
    services.apply((EXAMPLES / "tariff.yaml").read_text())
    for n in range(4):
        words = ("--memory", f"{1 + n}GiB", "--account", f"team-{n % 2}", *(("--compute", "10%") if n % 2 else ()))
        assert world.carve("run", *words, "--", "true").returncode == 0
    before = ended(services, 4)
    records = json.loads(asked(world.socket, "/v1/usage?after=0")[2])["records"]
    assert sorted(one["pod"] for one in before) == sorted(record["slice"]["name"] for record in records)
    services.restart()
    world.process.kill()
    world.process.wait()
    world.start()
    assert ended(services, 4) == before
    bill = json.loads(services.carve("bill", "-o", "json"))
    assert [item["key"] for item in bill["items"]] == ["team-0", "team-1"]
    assert sum(fractions.Fraction(one["amount"]) for one in before) == fractions.Fraction(bill["total"]["amount"])


def test_conflicting_tariffs_and_invalid_queries_are_rejected(services):
    tariff = (EXAMPLES / "tariff.yaml").read_text()
    services.apply(tariff)
    assert "two tariffs start at 2026-09-01T00:00:00Z; change the date of one" in \
        services.apply(tariff.replace("name: autumn", "name: other"), status=1)
    assert "tariffs in EUR and in USD" in services.apply(
        tariff.replace("name: autumn", "name: other").replace("2026-09", "2026-10").replace("EUR", "USD"), status=1)
    assert "spec.pricePerGpuHour '0,30'" in services.apply(tariff.replace('"0.30"', '"0,30"'), status=1)
    assert "--from 2026-11-02 must be before --to 2026-11-01" in \
        services.carve("bill", "--from", "2026-11-02", "--to", "2026-11-01", status=2)
    assert "--by prints sums, but --idle prints lines" in services.carve("bill", "--idle", "--by", "job", status=2)
    assert "--idle does not support csv" in services.carve("bill", "--idle", "-o", "csv", status=2)
    assert "--account is empty" in services.carve("bill", "--account", "", status=2)
    assert "from 'soon': must be a date or a time in UTC" in services.carve("bill", "--from", "soon", status=1)
    assert "no invoice line n1.99.0" in services.carve("bill", "explain", "n1.99.0", status=1)
