#include "dialects/pod/admission.h"

#include <gmock/gmock.h>

#include "dialects/pod/testing/dialect_rows.h"
#include "kubernetes/format/pod_request.h"
#include "yaml/documents.h"

namespace carve::dialects {
namespace {

using api::Json;
using ::testing::HasSubstr;

Json json_of_yaml(const std::string& yaml) {
  const auto documents = yaml::documents_of(yaml);
  EXPECT_TRUE(documents) << yaml;
  return documents ? *api::parse(documents->front()) : Json();
}

Json pod_of(const std::string& limits, const std::string& metadata = "", const std::string& more = "") {
  return json_of_yaml(
      fmt::format("metadata: {{name: a{}{}}}\nspec: {{containers: [{{name: c, image: i, resources: {{limits: "
                  "{{{}}}}}}}]{}{}}}",
                  metadata.empty() ? "" : ", ", metadata, limits, more.empty() ? "" : ", ", more));
}

std::string text_of_annotation(const Json& pod) {
  return pod["metadata"]["annotations"]["carve.dev/request"];
}

kubernetes::PodRequest request_of(const Json& pod) {
  auto request = kubernetes::read_request(text_of_annotation(pod));
  EXPECT_TRUE(request) << text_of_annotation(pod);
  return request ? *request : kubernetes::PodRequest{};
}

PodSettings unit_of(MemoryUnit unit) {
  PodSettings settings;
  settings.unit = unit;
  settings.models = {"NVIDIA A10", "NVIDIA H100"};
  return settings;
}

std::string refusal(const Json& pod, const PodSettings& settings = {}) {
  const auto admitted = admit(pod, settings);
  return admitted ? "" : admitted.error().front().message;
}

TEST(Admission, translates_the_example_of_the_memory_unit) {
  const Json pod = pod_of("aliyun.com/gpu-mem: 16, cpu: 2", "ownerReferences: [{uid: u1, controller: true}]");
  const auto admitted = admit(pod, unit_of(MemoryUnit::mib_128));
  ASSERT_TRUE(admitted) << admitted.error().front().message;
  EXPECT_TRUE(admitted->is_sliced);
  const Json& out = admitted->pod;
  EXPECT_EQ(out["spec"]["containers"][0]["resources"].dump(),
            R"({"limits":{"cpu":2,"carve.dev/memory":"2Gi","carve.dev/slot":"1"}})");
  EXPECT_EQ(out["metadata"]["labels"]["carve.dev/sliced"], "true");
  EXPECT_EQ(out["spec"]["schedulerName"], "carve-scheduler");
  EXPECT_EQ(out["spec"]["nodeSelector"]["carve.dev/node"], "extender");
  EXPECT_EQ(out["spec"]["tolerations"].dump(),
            R"([{"key":"carve.dev/gpu","operator":"Exists","effect":"NoSchedule"}])");
  EXPECT_EQ(text_of_annotation(out),
            R"({"v":1,"dialect":"ack","given":{"c":{"aliyun.com/gpu-mem":"16"}},)"
            R"("containers":{"c":{"memory_bytes":2147483648,"unit":134217728,"units":16}},)"
            R"("cpu":0,"application":"u1"})");
  const auto large = admit(pod, unit_of(MemoryUnit::gib));
  EXPECT_EQ(large->pod["spec"]["containers"][0]["resources"]["limits"]["carve.dev/memory"], "16Gi");
}

TEST(Admission, admitting_every_example_again_changes_nothing) {
  for (const auto& [limits, metadata, result] : testing::accepted()) {
    const auto admitted = admit(pod_of(limits, metadata), unit_of(MemoryUnit::gib));
    ASSERT_TRUE(admitted) << limits << ": " << admitted.error().front().message;
    EXPECT_TRUE(admitted->is_sliced) << limits;
    const auto again = admit(admitted->pod, unit_of(MemoryUnit::gib));
    ASSERT_TRUE(again) << limits << ": " << again.error().front().message;
    EXPECT_EQ(Json::diff(admitted->pod, again->pod), Json::array()) << limits;
  }
}

TEST(Admission, rejections_have_the_same_messages_as_on_one_machine) {
  for (const auto& [limits, metadata, message] : testing::refused())
    EXPECT_EQ(refusal(pod_of(limits, metadata)).substr(0, message.size()), message) << limits;
  EXPECT_EQ(refusal(pod_of("aliyun.com/gpu-mem: 0"), unit_of(MemoryUnit::gib)),
            "aliyun.com/gpu-mem: 0; must be a whole number of 1 GiB, at least 1");
  EXPECT_EQ(refusal(pod_of("aliyun.com/gpu-mem: 16", "labels: {aliyun.com/gpu-count: '3'}"),
                    unit_of(MemoryUnit::mib_128)),
            "aliyun.com/gpu-count: 3 does not divide 16 units of 128 MiB equally");
}

TEST(Admission, writes_the_totals_of_each_container) {
  const std::tuple<const char*, const char*, const char*, const char*> rows[] = {
      {"carve.dev/memory: 12Gi, carve.dev/devices: 3, carve.dev/compute: 30", "", "12Gi", "30"},
      {"nvidia.com/gpu: 2, nvidia.com/gpumem: 3000, nvidia.com/gpucores: 30", "", "6000Mi", "60"},
      {"nvidia.com/gpu: 2", "", "", "200"},
      {"vke.volcengine.com/mgpu-core: 30, vke.volcengine.com/mgpu-memory: 3072",
       "annotations: {vke.volcengine.com/container-multiple-gpu: '3'}", "3Gi", "30"},
      {"nvidia.com/gpumem-percentage: 50", "", "", ""}};
  for (const auto& [limits, metadata, memory, compute] : rows) {
    const auto admitted = admit(pod_of(limits, metadata), {});
    ASSERT_TRUE(admitted) << limits;
    const Json& out = admitted->pod["spec"]["containers"][0]["resources"]["limits"];
    EXPECT_EQ(out.value("carve.dev/memory", ""), memory) << limits;
    EXPECT_EQ(out.value("carve.dev/compute", ""), compute) << limits;
    EXPECT_EQ(out.value("carve.dev/slot", ""), "1") << limits;
    EXPECT_FALSE(out.contains("nvidia.com/gpu") || out.contains("carve.dev/devices")) << limits;
  }
}

TEST(Admission, writes_the_sum_of_unequal_parts) {
  const auto admitted = admit(
      pod_of("carve.dev/devices: 3", "annotations: {carve.dev/parts: '8Gi:30%,4Gi:10%,2 units:12.5%'}"), {});
  ASSERT_TRUE(admitted) << admitted.error().front().message;
  const Json& out = admitted->pod["spec"]["containers"][0]["resources"]["limits"];
  EXPECT_EQ(out.value("carve.dev/memory", ""), "14Gi");
  EXPECT_EQ(out.value("carve.dev/compute", ""), "52");
  EXPECT_EQ(request_of(admitted->pod).containers.at("c").amounts.parts,
            *parse_parts("8GiB:30%,4GiB:10%,2GiB:12.5%"));
  const auto percent = admit(pod_of("carve.dev/devices: 2", "annotations: {carve.dev/parts: '50%,4Gi'}"), {});
  ASSERT_TRUE(percent);
  EXPECT_FALSE(percent->pod["spec"]["containers"][0]["resources"]["limits"].contains("carve.dev/memory"));
}

TEST(Admission, removes_forged_annotations) {
  const char* forged = R"('{"v":1,"dialect":"carve","given":{"c":{"carve.dev/memory":"1Gi"}},)"
                       R"("containers":{"c":{"memory_bytes":1073741824,"devices":1}}}')";
  const std::string marks = fmt::format(
      "labels: {{carve.dev/sliced: 'true'}}, annotations: {{carve.dev/slices: x, carve.dev/request: {}}}",
      forged);
  const auto admitted = admit(pod_of("carve.dev/memory: 4Gi", marks), {});
  ASSERT_TRUE(admitted) << admitted.error().front().message;
  EXPECT_EQ(request_of(admitted->pod).containers.at("c").amounts.memory_bytes, 4ull << 30);
  EXPECT_FALSE(admitted->pod["metadata"]["annotations"].contains("carve.dev/slices"));
  const auto plain = admit(pod_of("cpu: 1", marks), {});
  ASSERT_TRUE(plain);
  EXPECT_FALSE(plain->is_sliced);
  EXPECT_FALSE(plain->pod["metadata"].contains("annotations"));
  EXPECT_FALSE(plain->pod["metadata"].contains("labels"));
}

TEST(Admission, gives_each_of_several_containers_its_own_slice) {
  const Json pod = json_of_yaml(R"(
metadata: {name: a, annotations: {vke.volcengine.com/container-multiple-gpu: "2,1"}}
spec:
  containers:
  - {name: big, resources: {limits: {vke.volcengine.com/mgpu-core: 40, vke.volcengine.com/mgpu-memory: 4096}, requests: {cpu: 500m}}}
  - {name: small, resources: {limits: {vke.volcengine.com/mgpu-core: 10, vke.volcengine.com/mgpu-memory: 300}, requests: {cpu: 1}}}
  initContainers:
  - {name: side, restartPolicy: Always, resources: {limits: {vke.volcengine.com/mgpu-core: 5, vke.volcengine.com/mgpu-memory: 257}}}
  - {name: setup, resources: {limits: {cpu: 1}}}
)");
  const auto admitted = admit(pod, {});
  ASSERT_TRUE(admitted) << admitted.error().front().message;
  const kubernetes::PodRequest request = request_of(admitted->pod);
  EXPECT_EQ(request.cpu, 1500u);
  EXPECT_EQ(request.containers.at("big").amounts.devices, 2u);
  EXPECT_EQ(request.containers.at("big").amounts.memory_bytes, 2048ull << 20);
  EXPECT_EQ(request.containers.at("small").amounts.devices, 1u);
  EXPECT_EQ(request.containers.at("side").amounts.memory_bytes, 257ull << 20);
  EXPECT_EQ(admitted->pod["spec"]["initContainers"][0]["resources"]["limits"]["carve.dev/slot"], "1");
  EXPECT_FALSE(request.containers.contains("setup"));
}

TEST(Admission, replaces_a_request_for_slots_with_the_limit) {
  const auto admitted = admit(json_of_yaml(R"(
spec:
  containers:
  - {name: c, resources: {limits: {carve.dev/memory: 2Gi}, requests: {carve.dev/slot: 2, cpu: 1}}}
)"),
                              {});
  ASSERT_TRUE(admitted) << admitted.error().front().message;
  const Json& resources = admitted->pod["spec"]["containers"][0]["resources"];
  EXPECT_EQ(resources["requests"], (Json{{"cpu", 1}}));
  EXPECT_EQ(resources["limits"]["carve.dev/slot"], "1");
  EXPECT_EQ(admit(admitted->pod, {})->pod, admitted->pod) << "again";
}

TEST(Admission, checks_rules_that_concern_the_whole_pod) {
  const auto two = [](const char* a, const char* b) {
    return json_of_yaml(
        fmt::format("metadata: {{}}\nspec: {{containers: [{{name: a, resources: {{limits: {{{}}}}}}}, "
                    "{{name: b, resources: {{limits: {{{}}}}}}}]}}",
                    a, b));
  };
  EXPECT_EQ(refusal(two("aliyun.com/gpu-mem: 1", "carve.dev/memory: 4Gi")),
            "container b uses dialect carve, but another container uses ack; use only one dialect");
  const auto counted = [&](Json pod) {
    pod["metadata"]["labels"]["aliyun.com/gpu-count"] = "2";
    return pod;
  };
  EXPECT_EQ(refusal(counted(two("aliyun.com/gpu-mem: 4", "aliyun.com/gpu-mem: 2"))),
            "aliyun.com/gpu-count may be used only if one container of the pod requests a slice; container b "
            "also requests one");
  EXPECT_EQ(refusal(counted(two("aliyun.com/gpu-mem: 4", ""))), "");
  PodSettings without_ack;
  without_ack.dialects = {Dialect::carve};
  EXPECT_EQ(refusal(two("aliyun.com/gpu-mem: 1", ""), without_ack),
            "aliyun.com/gpu-mem: dialect ack is disabled in carve-settings");
  PodSettings other_plugin;
  other_plugin.plain_nvidia_is_whole = false;
  EXPECT_FALSE(admit(two("nvidia.com/gpu: 1", ""), other_plugin)->is_sliced);
  EXPECT_EQ(refusal(json_of_yaml(
                "spec: {initContainers: [{name: i, resources: {limits: {aliyun.com/gpu-mem: 1}}}]}")),
            "init container i: cannot have a slice, because a kubelet restart may then kill the pod; request "
            "it in a regular container");
  EXPECT_EQ(refusal(pod_of("carve.dev/memory: 4Gi", "", "nodeName: n1")),
            "spec.nodeName: Carve's scheduler chooses the node; use nodeSelector");
  EXPECT_EQ(refusal(pod_of("cpu: 1", "", "nodeName: n1")), "") << "the pod requests no slice";
  EXPECT_EQ(refusal(json_of_yaml("kind: Pod")), "spec: is required");
}

TEST(Admission, an_init_container_may_share_the_first_slice) {
  const auto pod = [](const char* init, const char* more = "") {
    return json_of_yaml(fmt::format(
        "metadata: {{}}\nspec: {{containers: [{{name: plain}}, {{name: a, resources: {{limits: "
        "{{carve.dev/memory: 4Gi, "
        "carve.dev/compute: 30}}}}}}], initContainers: [{{name: i, resources: {{limits: {{{}}}}}}}{}]}}",
        init, more));
  };
  PodSettings share;
  share.init_containers_share = true;
  const Json asked = pod("carve.dev/memory: 4096Mi, carve.dev/compute: 30");
  const auto admitted = admit(asked, share);
  ASSERT_TRUE(admitted) << admitted.error().front().message;
  const kubernetes::PodRequest request = request_of(admitted->pod);
  EXPECT_EQ(request.containers.size(), 1u);
  EXPECT_EQ(request.given.at("i").at("carve.dev/memory"), "4096Mi");
  EXPECT_EQ(admitted->pod["spec"]["initContainers"][0]["resources"]["limits"],
            (Json{{"carve.dev/memory", "4Gi"}, {"carve.dev/compute", "30"}, {"carve.dev/slot", "1"}}));
  EXPECT_EQ(admit(admitted->pod, share)->pod, admitted->pod) << "again";
  EXPECT_EQ(refusal(asked),
            "init container i: cannot have a slice, because a kubelet restart may then kill the pod; request "
            "it in a regular container");
  EXPECT_EQ(refusal(pod("carve.dev/memory: 5Gi, carve.dev/compute: 30"), share),
            "init container i: shares the slice of container a and must request the same amounts");
  EXPECT_EQ(refusal(pod("aliyun.com/gpu-mem: 4"), share),
            "container i uses dialect ack, but another container uses carve; use only one dialect");
  EXPECT_EQ(refusal(pod("carve.dev/memory: 4Gi, carve.dev/compute: 30",
                        ", {name: s, restartPolicy: Always, resources: {limits: {carve.dev/memory: 1Gi}}}"),
                    share),
            "init container i: a sidecar of the pod also requests a slice; request one in only one of "
            "these two containers");
  EXPECT_EQ(
      refusal(
          json_of_yaml("spec: {initContainers: [{name: i, resources: {limits: {carve.dev/memory: 1Gi}}}]}"),
          share),
      "init container i: no regular container has a slice to share; request one in a regular container");
}

TEST(Admission, containers_must_have_unique_names) {
  const auto named = [](const char* first, const char* second) {
    return json_of_yaml(
        fmt::format("spec: {{containers: [{{{}resources: {{limits: {{carve.dev/memory: 1Gi}}}}}}], "
                    "initContainers: [{{{}image: i}}]}}",
                    first, second));
  };
  EXPECT_EQ(refusal(named("", "name: b, ")),
            "spec.containers[0].name: is required for a container of a pod with slices");
  EXPECT_EQ(refusal(named("name: a, ", "")),
            "spec.initContainers[0].name: is required for a container of a pod with slices");
  EXPECT_EQ(refusal(named("name: a, ", "name: a, ")),
            "spec.initContainers[0].name: must be unique in the pod");
  EXPECT_EQ(refusal(named("name: a, ", "name: b, ")), "");
}

TEST(Admission, selects_models_by_parts_of_their_names) {
  const auto admitted = admit(pod_of("nvidia.com/gpumem: 3000", "annotations: {nvidia.com/use-gputype: A10}"),
                              unit_of(MemoryUnit::gib));
  ASSERT_TRUE(admitted);
  EXPECT_THAT(request_of(admitted->pod).containers.at("c").amounts.models,
              ::testing::ElementsAre("NVIDIA A10"));
  EXPECT_EQ(refusal(pod_of("nvidia.com/gpumem: 3000", "annotations: {nvidia.com/use-gputype: T4}"),
                    unit_of(MemoryUnit::gib)),
            "nvidia.com/use-gputype: no device has an allowed model; the models are NVIDIA A10, NVIDIA H100");
  const auto warned =
      admit(pod_of("nvidia.com/gpumem: 3000", "annotations: {hami.io/node-scheduler-policy: spread}"), {});
  EXPECT_THAT(warned->warnings, ::testing::ElementsAre("hami.io/node-scheduler-policy has no effect here"));
}

TEST(Admission, rejects_settings_that_keep_a_pod_from_devices) {
  const char* const limits = "nvidia.com/gpumem: 3000";
  EXPECT_EQ(refusal(pod_of(limits, "annotations: {nvidia.com/nouse-gpuuuid: GPU-1}")),
            "nvidia.com/nouse-gpuuuid is not supported; list the allowed devices in nvidia.com/use-gpuuuid");
  EXPECT_EQ(refusal(pod_of(limits, "annotations: {nvidia.com/vgpu-mode: mig}")),
            "nvidia.com/vgpu-mode: 'mig' is not supported, because slices are not MIG devices; leave it out");
  EXPECT_EQ(refusal(pod_of(limits, "annotations: {nvidia.com/vgpu-mode: hami-core}")), "");
}

TEST(Admission, warns_about_settings_without_effect) {
  const auto warnings = [](const char* limits, const char* annotation, const char* variable) {
    Json pod = pod_of(limits, fmt::format("annotations: {{{}}}", annotation).c_str());
    pod["spec"]["containers"][0]["env"] = {{{"name", variable}, {"value", "true"}}};
    const auto admitted = admit(pod, {});
    EXPECT_TRUE(admitted);
    return admitted ? admitted->warnings : std::vector<std::string>{};
  };
  using ::testing::ElementsAre;
  EXPECT_THAT(warnings("aliyun.com/gpu-mem: 3", "a: b", "CGPU_DISABLE"),
              ElementsAre("container c: env CGPU_DISABLE has no effect here"));
  EXPECT_THAT(warnings("nvidia.com/gpumem: 3000", "nvidia.com/other: b", "A"),
              ElementsAre("nvidia.com/other has no effect here"));
  EXPECT_THAT(warnings("aliyun.com/gpu-mem: 3", "nvidia.com/other: b", "A"), ::testing::IsEmpty());
  EXPECT_THAT(warnings("cpu: 3", "a: b", "CGPU_DISABLE"), ::testing::IsEmpty());
}

// Returns the annotation in the format of Kubernetes 1.36.2 (plugin/pkg/admission/limitranger/admission.go).
std::string defaulted_by_range(const std::string& items) {
  return "annotations: {kubernetes.io/limit-ranger: 'LimitRanger plugin set: " + items + "'}";
}

TEST(Admission, a_limit_range_does_not_mix_dialects) {
  const std::string both = defaulted_by_range(
      "carve.dev/compute, carve.dev/memory request for container c; carve.dev/compute, carve.dev/memory "
      "limit for container c");
  Json pod = pod_of("aliyun.com/gpu-mem: 1, carve.dev/memory: 2Gi, carve.dev/compute: 50", both);
  const auto admitted = admit(pod, unit_of(MemoryUnit::gib));
  ASSERT_TRUE(admitted) << admitted.error().front().message;
  const Json& limits = admitted->pod["spec"]["containers"][0]["resources"]["limits"];
  EXPECT_EQ(limits.dump(), R"({"carve.dev/memory":"1Gi","carve.dev/slot":"1","carve.dev/compute":50})")
      << "a max of compute rejects containers without compute";
  EXPECT_EQ(request_of(admitted->pod).dialect, "ack");
  EXPECT_FALSE(request_of(admitted->pod).containers.at("c").amounts.share_bp);
  EXPECT_EQ(admit(admitted->pod, unit_of(MemoryUnit::gib))->pod, admitted->pod);
  EXPECT_THAT(refusal(pod_of("aliyun.com/gpu-mem: 1, carve.dev/memory: 2Gi, carve.dev/compute: 50",
                             defaulted_by_range("carve.dev/compute limit for container c"))),
              HasSubstr("mixes carve.dev/memory and aliyun.com/gpu-mem"))
      << "the owner set both";
  EXPECT_FALSE(admit(pod_of("nvidia.com/gpu: 1, carve.dev/memory: 2Gi",
                            defaulted_by_range("carve.dev/memory limit for container c")),
                     [] {
                       PodSettings settings;
                       settings.plain_nvidia_is_whole = false;
                       return settings;
                     }())
                   ->is_sliced)
      << "NVIDIA's plugin serves the limit";
}

TEST(Admission, warns_about_a_slice_that_comes_only_from_a_limit_range) {
  const auto admitted = admit(
      pod_of("carve.dev/memory: 2Gi", defaulted_by_range("carve.dev/memory limit for container c")), {});
  ASSERT_TRUE(admitted);
  EXPECT_TRUE(admitted->is_sliced);
  ASSERT_EQ(admitted->warnings.size(), 1u);
  EXPECT_THAT(admitted->warnings[0], HasSubstr("container c has a slice because a LimitRange"));
  // Compute without memory is not a request, and ordinary init containers have no slice.
  const auto plain = admit(
      pod_of("carve.dev/compute: 50", defaulted_by_range("carve.dev/compute limit for container c")), {});
  ASSERT_TRUE(plain) << plain.error().front().message;
  EXPECT_FALSE(plain->is_sliced);
  EXPECT_TRUE(plain->pod["spec"]["containers"][0]["resources"]["limits"].empty());
  const Json init =
      pod_of("carve.dev/memory: 2Gi",
             defaulted_by_range(
                 "carve.dev/memory limit for container c; carve.dev/memory limit for init container i"),
             "initContainers: [{name: i, image: i, resources: {limits: {carve.dev/memory: 2Gi}}}]");
  EXPECT_EQ(refusal(init), "");
  const Json kept = admit(init, {})->pod["spec"]["initContainers"][0]["resources"]["limits"];
  EXPECT_EQ(kept.dump(), R"({"carve.dev/memory":"2Gi"})") << "the container has no slot and thus no slice";
}

TEST(Admission, removes_the_node_from_a_copy_of_a_pod_that_ran) {
  Json copy = admit(pod_of("aliyun.com/gpu-mem: 2"), unit_of(MemoryUnit::gib))->pod;
  copy["spec"]["nodeName"] = "n1";
  copy["metadata"]["annotations"]["carve.dev/slices"] = "{}";
  const auto again = admit(copy, unit_of(MemoryUnit::gib));
  ASSERT_TRUE(again) << again.error().front().message;
  EXPECT_FALSE(again->pod["spec"].contains("nodeName"));
  EXPECT_FALSE(again->pod["metadata"]["annotations"].contains("carve.dev/slices"));
  ASSERT_EQ(again->warnings.size(), 1u);
  EXPECT_THAT(again->warnings[0], HasSubstr("spec.nodeName n1 is left out"));
}

TEST(Admission, mirror_pods_are_not_changed) {
  const Json pod = pod_of("carve.dev/memory: 5", "annotations: {kubernetes.io/config.mirror: x}");
  EXPECT_EQ(Json::diff(pod, admit(pod, {})->pod), Json::array());
}

}  // namespace
}  // namespace carve::dialects
