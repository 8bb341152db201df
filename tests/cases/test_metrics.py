"""Tests the metrics, as read by Prometheus' own client, on the API's socket and, if requested, on a loopback
address; also the trace."""
import json
import os
import re
import subprocess
import urllib.error
import urllib.request

import pytest

from conftest import BUILD, GiB, LOAD, until

NOT_INSTALLED = "prometheus_client (tests/requirements.txt) is not installed"
parser = pytest.importorskip("prometheus_client.parser", reason=NOT_INSTALLED)
openmetrics = pytest.importorskip("prometheus_client.openmetrics.parser", reason=NOT_INSTALLED)


def families(text):
    """Returns the metric families by name. The parser rejects text that is not an exposition."""
    return {f.name: f for f in parser.text_string_to_metric_families(text)}


def value(found, name, **labels):
    (one,) = [s.value for s in found[name].samples if all(s.labels[k] == v for k, v in labels.items())]
    return one


def begin(world, name, *options):
    world.begin("run", "--memory", "4GiB", "--device", 0, "--name", name, *options, "--", LOAD, "--allocate", "1GiB", "--kernels", "200us",
                "--seconds", 600)
    assert until(lambda: world.slices().get(name, {"parts": [{"charged_bytes": 0}]})["parts"][0]["charged_bytes"] > GiB, 30)


def test_prometheus_reads_the_same_values_as_the_api(world):
    begin(world, "a", "--compute", "30%")
    status, kind, text = world.get("/metrics")
    assert (status, kind) == (200, "text/plain; version=0.0.4; charset=utf-8")
    found = families(text)
    device = world.json("devices")["devices"][0]
    place = {"device": "0", "uuid": device["uuid"]}
    assert value(found, "carve_device_memory_usable_bytes", **place) == device["usable_bytes"]
    assert value(found, "carve_slice_memory_quota_bytes", slice="a", **place) == 4 * GiB
    charged = lambda: value(families(world.get("/metrics")[2]), "carve_slice_memory_charged_bytes", slice="a", **place)
    assert until(lambda: charged() == world.show("a")["parts"][0]["charged_bytes"]), "it may grow between two looks"
    assert value(found, "carve_slice_compute_share_ratio", slice="a", **place) == 0.3
    info = found["carve_slice_info"].samples[0].labels
    assert info["policy"] == "fixed-share" and info["isolation"] == "memory+compute" and info["class"] == "batch"
    for family in found.values():
        assert family.documentation and family.type in ("gauge", "counter"), family
        if not family.name.startswith("DCGM_"):  # NVIDIA's name of a counter does not end with _total.
            assert all(s.name.endswith("_total") for s in family.samples) == (family.type == "counter"), family.name


def fetched(url, accept):
    answer = urllib.request.urlopen(urllib.request.Request(url, headers={"Accept": accept}), timeout=10)
    return answer.headers["Content-Type"], answer.read().decode()


@pytest.mark.devices("a10x2", "--metrics-listen", "127.0.0.1:0")
def test_openmetrics_has_the_same_values_with_units(world):
    begin(world, "a", "--compute", "30%")
    (url,) = re.findall(r"metrics served at (http://127\.0\.0\.1:\d+/metrics)", (world.folder / "log").read_text())
    kind, text = fetched(url, "application/openmetrics-text;version=1.0.0,text/plain;q=0.5,*/*;q=0.1")
    assert kind == "application/openmetrics-text; version=1.0.0; charset=utf-8" and text.endswith("\n# EOF\n")
    found = {f.name: f for f in openmetrics.text_string_to_metric_families(text)}
    plain = families(fetched(url, "text/plain")[1])
    assert found["carve_slice_memory_quota_bytes"].unit == "bytes" and found["carve_slice_compute_busy_seconds"].unit == "seconds"
    assert found["carve_slice_compute_busy_seconds"].type == "counter"
    assert value(found, "carve_slice_memory_quota_bytes", slice="a") == value(plain, "carve_slice_memory_quota_bytes", slice="a") == 4 * GiB

    def names():
        """A family without samples is omitted, and the slice's slowdown has one when it has worked."""
        texts = [fetched(url, accept)[1] for accept in ("application/openmetrics-text", "text/plain")]
        return [{f.name for f in read(text)} for read, text in zip((openmetrics.text_string_to_metric_families,
                                                                    parser.text_string_to_metric_families), texts)]
    assert until(lambda: (both := names())[0] == both[1] and both), names()


def test_devices_have_dcgms_names(world):
    begin(world, "a")
    found = families(world.get("/metrics")[2])
    device = world.json("devices")["devices"][0]
    place = {"gpu": "0", "UUID": device["uuid"], "modelName": "NVIDIA A10", "device": "nvidia0", "pci_bus_id": device["pci_id"]}
    used = lambda: value(families(world.get("/metrics")[2]), "DCGM_FI_DEV_FB_USED", **place)
    assert until(lambda: used() == world.json("devices")["devices"][0]["used_bytes"] // (1 << 20) > 1024), used()
    total = sum(value(families(world.get("/metrics")[2]), f"DCGM_FI_DEV_FB_{part}", **place) for part in ("USED", "FREE", "RESERVED"))
    assert abs(total - device["native_bytes"] / (1 << 20)) <= 3, "each is rounded down"
    assert value(found, "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", **place) > 0 and value(found, "DCGM_FI_DEV_XID_ERRORS", **place) == 0
    assert found["DCGM_FI_DEV_GPU_TEMP"].samples[0].labels["Hostname"] == os.uname().nodename


@pytest.mark.devices("a10x1", "--dcgm-names", "no")
def test_dcgms_names_can_be_left_to_nvidias_exporter(world):
    text = world.get("/metrics")[2]
    assert "DCGM" not in text and "carve_device_power_watts" in text


def test_slices_show_idle_time_slowdown_and_energy(world):
    assert world.carve("slice", "create", "--memory", "1GiB", "--device", "1", "--name", "idle").returncode == 0
    for name in "a", "b":
        begin(world, name, "--compute", "40%")
    read = lambda name, of: value(families(world.get("/metrics")[2]), name, slice=of)
    assert until(lambda: read("carve_slice_idle_seconds", "idle") >= 2) and read("carve_slice_idle_seconds", "a") <= 1
    assert world.slices()["idle"]["idle_seconds"] >= 2
    # Both always have work, so each takes more than twice as long as alone.
    assert until(lambda: read("carve_slice_slowdown_ratio", "a") > 1.5, 30)
    shown = until(lambda: world.slices()["a"]["parts"][0]["compute"]["waits_60s"])
    assert [one["slice"] for one in shown] == ["b"] and shown[0]["waiting_ns"] > 0
    assert "waited in the last minute: " in world.carve("top", "--once").stdout
    energy = lambda of: read("carve_slice_energy_joules", of)
    assert until(lambda: energy("a") > 0 and energy("b") > 0, 30) and energy("idle") == 0
    device = value(families(world.get("/metrics")[2]), "carve_device_energy_joules", device="0")
    assert energy("a") + energy("b") <= device


def test_nvml_in_a_slice_reports_the_slices_energy(world):
    """nvmlDeviceGetTotalEnergyConsumption of the simulated driver, as a program in the slice calls it."""
    script = "import ctypes; n = ctypes.CDLL('libnvidia-ml.so.1'); n.nvmlInit_v2()\n" \
             "d = ctypes.c_void_p(); e = ctypes.c_ulonglong()\n" \
             "assert n.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(d)) == 0\n" \
             "assert n.nvmlDeviceGetTotalEnergyConsumption(d, ctypes.byref(e)) == 0; print(e.value)"
    begin(world, "busy", "--compute", "40%")
    assert until(lambda: value(families(world.get("/metrics")[2]), "carve_device_energy_joules", device="0") > 0)
    done = world.carve("run", "--memory", "1GiB", "--device", "0", "--name", "looks", "--", "/usr/bin/python3", "-c", script)
    assert done.returncode == 0, done.stderr
    device = value(families(world.get("/metrics")[2]), "carve_device_energy_joules", device="0")
    assert int(done.stdout) / 1000 < device / 2, "the slice has hardly worked"


def test_compute_counters_never_decrease(world):
    begin(world, "a", "--compute", "30%")
    busy = lambda: value(families(world.get("/metrics")[2]), "carve_slice_compute_busy_seconds", slice="a")
    assert until(lambda: busy() > 0)
    before = busy()
    assert until(lambda: busy() > before)


@pytest.mark.skipif(os.geteuid() != 0, reason="run as root this case also plays an ordinary user")
def test_other_users_see_only_their_own_slices(world):
    os.chmod(world.socket, 0o666)
    begin(world, "secret")
    ask = "import http.client, socket\nc = http.client.HTTPConnection('x'); c.sock = socket.socket(socket.AF_UNIX)\n" \
          f"c.sock.connect({str(world.socket)!r})\nc.request('GET', '/metrics'); print(c.getresponse().read().decode())"
    seen = subprocess.run(["/usr/bin/python3", "-c", ask], capture_output=True, text=True, user=65534, group=65534, extra_groups=[],
                          timeout=30)
    assert "carve_device_memory_usable_bytes" in seen.stdout and "secret" not in seen.stdout


@pytest.mark.devices("a10x1", "--metrics-listen", "127.0.0.1:0")
def test_only_metrics_are_served_over_tcp(world):
    begin(world, "a")
    (url,) = re.findall(r"metrics served at (http://127\.0\.0\.1:\d+/metrics)", (world.folder / "log").read_text())
    found = families(urllib.request.urlopen(url, timeout=10).read().decode())
    assert value(found, "carve_slice_memory_quota_bytes", slice="a") == 4 * GiB
    for path, method, status in ("/v1/slices", "GET", 404), ("/v1/slices/a", "DELETE", 404), ("/metrics", "POST", 405):
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(urllib.request.Request(url.replace("/metrics", path), method=method), timeout=10)
        assert refused.value.code == status
    assert "a" in world.slices()


def test_an_address_that_others_can_reach_is_opened_only_on_request(world):
    done = subprocess.run([BUILD / "bin/carved", "--sim", "a10x1", "--state", world.folder / "other", "--socket", world.folder / "o",
                           "--metrics-listen", "0.0.0.0:0"],
                          capture_output=True, text=True, timeout=30)
    assert done.returncode == 2 and "--metrics-listen-any" in done.stderr


def test_a_trace_shows_which_slice_ran_when(world):
    for name in "a", "b":
        begin(world, name, "--compute", "40%")
    path = world.folder / "trace.json"

    def traced():
        done = world.carve("trace", "--seconds", 2, "-o", path)
        assert done.returncode == 0, done.stderr
        events = json.loads(path.read_text())["traceEvents"]
        names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
        leases = [e for e in events if e.get("cat") == "lease"]
        return events, names, leases
    assert until(lambda: {traced()[1].get((e["pid"], e["tid"])) for e in traced()[2]} == {"a", "b"}, 20)
    events, names, leases = traced()
    assert json.loads(world.carve("trace", "-o", "json").stdout)["traceEvents"], "the form that other verbs have"
    assert any(e["name"] == "process_name" and e["args"]["name"].startswith("device 0: NVIDIA A10") for e in events)
    assert all(0 <= e["ts"] and e["ts"] + e["dur"] <= 2.5e6 for e in events if e["ph"] == "X")
    # Viewers can draw the spans of one track only if each is inside or after another one.
    for track in names:
        ends = []
        for e in sorted((e for e in events if e["ph"] == "X" and (e["pid"], e["tid"]) == track), key=lambda e: (e["ts"], -e["dur"])):
            while ends and ends[-1] <= e["ts"] + 0.002:
                ends.pop()
            assert not ends or e["ts"] + e["dur"] <= ends[-1] + 0.002, e
            ends.append(e["ts"] + e["dur"])
