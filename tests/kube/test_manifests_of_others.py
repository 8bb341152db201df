"""Manifests that follow the examples of other products (tests/kube/manifests): each is granted what it
requests, or rejected with a message that suggests what to do. Pods of Deployments and Jobs are created by
their controllers, whose events contain the rejections."""
import json

import pytest

from cluster import A10, GiB, HERE, node_object, until, uuid_of

MiB = 1 << 20
HALF = A10 // 2

# Keyed by the prefix of the pod's name: the number of pods, and the bytes and basis points that each
# container has on each device.
GRANTED = {
    "ack": {"ack-mnist-share": (1, {"mnist": [[3 * GiB, 0]]}),
            "ack-cuda-sample": (1, {"sample": [[2 * GiB, 3000]]}),
            "ack-multigpu": (1, {"multi": [[4 * GiB, 0]] * 2}),
            "ack-two": (2, {"model": [[2 * GiB, 0]]})},
    "vke": {"vke-one": (2, {"service": [[3000 * MiB, 3000]]}),
            "vke-several": (1, {"wide": [[2048 * MiB, 3000]] * 2, "narrow": [[1024 * MiB, 2000]]}),
            "vke-whole": (1, {"train": [[A10, 10000]] * 2}),
            "vke-sidecar": (1, {"train": [[512 * MiB, 1000]]})},
    "hami": {"hami-default": (1, {"ubuntu": [[3000 * MiB, 3000]] * 2}),
             "hami-part": (1, {"ubuntu": [[HALF, 3000]]}),
             "hami-type": (1, {"ubuntu": [[2000 * MiB, 0]]}),
             "hami-uuid": (1, {"ubuntu": [[2000 * MiB, 0]]}),
             "hami-serving": (2, {"high": [[1500 * MiB, 0]], "low": [[1000 * MiB, 0]]})}}

REFUSED = {
    "ack": {"ack-odd": "aliyun.com/gpu-count: 2 does not divide 7 units of 1 GiB equally",
            "ack-core-alone": "aliyun.com/gpu-core.percentage needs aliyun.com/gpu-mem",
            "ack-elastic": "elastic containers (VCI) do not support mGPU"},
    "vke": {"vke-small": "mgpu-memory: 256 MiB is too little; single-card sharing needs more than 256 MiB",
            "vke-elastic": "elastic containers (VCI) do not support mGPU",
            "vke-numbers": "container-multiple-gpu: 3 numbers for 2 containers",
            "vke-init": "init container warm: cannot have a slice, because a kubelet restart may then kill the pod; request it in a regular container"},
    "hami": {"hami-none-of-it": "nvidia.com/use-gputype: no device has an allowed model; the models are NVIDIA A10",
             "hami-both": "nvidia.com/gpumem and nvidia.com/gpumem-percentage are mutually exclusive",
             "hami-scheduler-named": "'hami-scheduler' does not use Carve; leave it out, or use carve-scheduler",
             "hami-runtime": "env NVIDIA_VISIBLE_DEVICES overrides the devices of the slice; remove it",
             "hami-mig": "nvidia.com/vgpu-mode: 'mig' is not supported, because slices are not MIG devices; leave it out"}}


@pytest.fixture(scope="module")
def carve(cluster):
    cluster.install()
    cluster.delete_pods()
    cluster.replace_nodes([node_object(n) for n in range(4)])
    pair = cluster.start("m1")
    assert until(lambda: pair.health()[0] == 200), pair.health()[1] + pair.log()
    # Waits until the webhook's certificate and the models of the nodes are known.
    assert until(lambda: cluster.api.call("POST", "/api/v1/namespaces/default/pods?dryRun=All",
                                          {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "probe"},
                                           "spec": {"containers": [{"name": "c", "image": "i",
                                                                    "resources": {"limits": {"carve.dev/memory": "1Gi"}}}]}})[0] == 201)
    yield cluster
    pair.end()


@pytest.fixture(params=sorted(GRANTED))
def applied(carve, request):
    """Applies one file; returns its name and kubectl's output."""
    file = HERE / "manifests" / f"{request.param}.yaml"
    text = carve.kubectl("apply", "-f", str(file), check=False)
    yield request.param, text
    carve.kubectl("delete", "-f", str(file), "--ignore-not-found", "--cascade=background", "--wait=false", check=False)
    carve.delete_pods()


def sliced_pods(carve, beginning):
    pods = carve.api.get("/api/v1/namespaces/default/pods")["items"]
    return [pod for pod in pods if pod["metadata"]["name"].startswith(beginning) and pod["spec"].get("nodeName")]


def events(carve):
    """Returns the names of objects with the notes of their events."""
    return [(name, note) for name, _, note in carve.events()]


def test_valid_manifests_are_granted_and_invalid_ones_rejected(carve, applied):
    product, text = applied
    for beginning, (count, wanted) in GRANTED[product].items():
        assert until(lambda: len(sliced_pods(carve, beginning)) == count), (beginning, text, events(carve))
        for pod in sliced_pods(carve, beginning):
            slices = json.loads(pod["metadata"]["annotations"]["carve.dev/slices"])["containers"]
            had = {name: [part[1:] for part in s["parts"]] for name, s in slices.items()}
            assert had == {name: [[bytes_ // MiB * MiB if bytes_ == HALF else bytes_, share] for bytes_, share in parts]
                           for name, parts in wanted.items()}, pod["metadata"]["name"]
            for container in pod["spec"]["containers"]:
                limits = container.get("resources", {}).get("limits", {})
                assert ("carve.dev/slot" in limits) == (container["name"] in wanted)
    for name, message in REFUSED[product].items():
        def is_said():
            return message in text or any(who.startswith(name) and message in note for who, note in events(carve))
        assert until(is_said), (name, text, events(carve))
        assert not any(pod["metadata"]["name"].startswith(name) for pod in carve.api.get("/api/v1/namespaces/default/pods")["items"])
    if product == "hami":
        check_hami(carve, text)


def check_hami(carve, text):
    assert carve.slices("hami-uuid")["containers"]["ubuntu"]["parts"][0][0] == uuid_of(1, 1)
    classes = {name: s["latency_class"] for name, s in
               json.loads(sliced_pods(carve, "hami-serving")[0]["metadata"]["annotations"]["carve.dev/slices"])["containers"].items()}
    assert classes == {"high": "latency", "low": "batch"}
    assert "hami.io/node-scheduler-policy has no effect here" in text, text
    # NVIDIA's own resource names are left to NVIDIA's plugin.
    assert "carve.dev/request" not in carve.pod("hami-exclusive")["metadata"].get("annotations", {})
    assert until(lambda: any(who == "hami-large" and note.startswith("0/4 nodes can serve: 4 too small") for who, note in events(carve)))


def test_settings_without_effect_give_a_warning(carve):
    """The user who creates the pod is warned, so that a limit that stays in force is no surprise."""
    def warning(env, limits, annotations=None):
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "warned", "annotations": annotations or {}},
               "spec": {"containers": [{"name": "c", "image": "i", "env": [{"name": env, "value": "true"}],
                                        "resources": {"limits": limits}}]}}
        return carve.kubectl("create", "--dry-run=server", "-f", "-", stdin=pod)
    ack, hami = {"aliyun.com/gpu-mem": "1"}, {"nvidia.com/gpumem": "1000"}
    assert "container c: env CGPU_DISABLE has no effect here" in warning("CGPU_DISABLE", ack)
    assert "env GPU_CORE_UTILIZATION_POLICY has no effect here" in warning("GPU_CORE_UTILIZATION_POLICY", hami)
    assert "nvidia.com/other has no effect here" in warning("A", hami, {"nvidia.com/other": "1"})
    assert "Warning" not in warning("A", ack)
