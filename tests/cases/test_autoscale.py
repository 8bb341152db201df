"""Autoscaling: the number of a service's replicas follows its load as counted by HAProxy."""
import subprocess

from conftest import until
from support.over_unix import asked
from test_services import Clients, document, pytestmark  # noqa: F401


def condition(status, kind):
    return next((c for c in status["conditions"] if c["type"] == kind), None)


def counted(services):
    """Returns the value of each sample of GET /metrics."""
    lines = [line.rsplit(" ", 1) for line in asked(services.socket, "/metrics")[2].splitlines() if not line.startswith("#")]
    return {name: float(value) for name, value in lines}


def watched(services):
    """Returns the cells of the first row that `carve get services -w` prints."""
    environment = {**services.agent.environment, "CARVE_CONTROLLER": str(services.socket)}
    watch = subprocess.Popen([str(services.agent.build / "bin/carve"), "get", "services", "-w"], stdout=subprocess.PIPE, text=True,
                             env=environment)
    try:
        return [watch.stdout.readline() for _ in range(2)][1].split()
    finally:
        watch.kill()
        watch.wait()


def test_replicas_are_added_under_load_and_their_number_is_explained(world, services):
    services.apply(document(replicas=1, memory="2GiB", share="10%"))
    endpoint = services.running()["endpoint"]
    assert condition(services.service("demo")["status"], "ScalingActive") is None
    assert "service/demo has 1 to 2 replicas; the target of each is qps 1" in services.carve("autoscale", "service/demo", "--max", 2, "--qps", 1)
    clients = Clients(endpoint)
    try:
        assert until(lambda: services.service("demo")["status"]["readyReplicas"] == 2, 120, 0.2), services.service("demo")["status"]
    finally:
        clients.end()
    assert not clients.failures
    shown = services.service("demo")
    assert (shown["spec"]["replicas"], shown["status"]["desiredReplicas"]) == (1, 2), "the spec stays as it was written"
    assert watched(services)[2] == "2/2", "READY counts those that the load needs"
    active, limited = (condition(shown["status"], kind) for kind in ("ScalingActive", "ScalingLimited"))
    assert active["status"] == "True" and active["message"].startswith("2 replicas are desired: qps is ")
    assert (limited["status"], limited["reason"]) == ("True", "TooManyReplicas") and "max is 2" in limited["message"]
    assert until(lambda: counted(services)['carve_service_requests_total{namespace="default",service="demo",code="2xx"}'] >= clients.total(), 30)
    assert 'carve_service_sessions{namespace="default",service="demo"}' in counted(services)
    # A new controller continues with the number; at the end of autoscaling the number in the spec applies
    # again.
    services.restart()
    assert services.running()["desiredReplicas"] == 2
    services.carve("autoscale", "service/demo", "--off")
    assert until(lambda: services.service("demo")["status"]["replicas"] == 1, 120, 0.2)


def test_the_autoscaling_of_an_eas_service_is_kept_when_its_document_changes(world, services):
    services.carve("autoscale", "service/none", "--qps", 5, status=1)
    path = services.folder / "eas.json"
    path.write_text('{"metadata": {"name": "My_Model", "instance": 1}, "containers": [{"command": "sleep 1000"}]}')
    services.carve("eas", "create", path)
    refused = services.carve("eas", "autoscale", "My_Model", "-Dmin=1", "-Dmax=2", "-Dstrategies.cpu=50", status=2)
    assert "'strategies.cpu' is not min, max, strategies.qps" in refused
    services.carve("eas", "autoscale", "My_Model", "-Dmin=2", "-Dmax=3", "-Dstrategies.gpu=50")
    assert until(lambda: services.service("my-model")["status"]["desiredReplicas"] == 2, 60, 0.1)
    services.carve("eas", "modify", "My_Model", "-Dmetadata.instance=1")
    assert services.service("my-model")["spec"]["autoscale"] == {"min": 2, "max": 3, "metric": "gpuUtilization", "target": 50}
    services.carve("eas", "autoscale", "rm", "My_Model")
    assert "autoscale" not in services.service("my-model")["spec"]
