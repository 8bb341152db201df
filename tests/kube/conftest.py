"""Cases against a real Kubernetes: its API server and its scheduler, without a kubelet. tests/kube/run runs them."""
import os

import pytest

# `pytest tests` leaves them out: they need a cluster, which is built from its modules.
collect_ignore_glob = [] if os.environ.get("CARVE_KUBE") else ["test_*.py"]


@pytest.fixture(scope="session")
def cluster():
    from cluster import Cluster, nameless_event
    # The referee reads what etcd has.
    c = Cluster(flags="--storage-media-type=application/json")
    try:
        c.begin()
        status, answer = c.api.call("POST", "/api/v1/namespaces/default/events", nameless_event())
        assert status == 201, answer
        yield c
    finally:
        c.end()
