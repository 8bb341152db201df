"""Tests with a real Kubernetes: its API server and its scheduler, without a kubelet. tests/kube/run runs
them."""
import os

import pytest

# `pytest tests` skips them because they need a cluster that is built from its Go modules.
collect_ignore_glob = [] if os.environ.get("CARVE_KUBE") else ["test_*.py"]


@pytest.fixture(scope="session")
def cluster():
    from cluster import Cluster, nameless_event
    # The referee reads what etcd stores.
    c = Cluster(flags="--storage-media-type=application/json")
    try:
        c.begin()
        status, answer = c.api.call("POST", "/api/v1/namespaces/default/events", nameless_event())
        assert status == 201, answer
        yield c
    finally:
        c.end()
