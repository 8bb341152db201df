#include "kubernetes/node/rules/container_start.h"

#include <gmock/gmock.h>

#include "kubernetes/format/pod_request.h"
#include "kubernetes/format/pod_slices.h"

namespace carve::kubernetes::node {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Kind = StartDecision::Kind;

constexpr const char* first_device = "GPU-00000000-0000-0000-0000-000000000001";
constexpr const char* second_device = "GPU-00000000-0000-0000-0000-000000000002";

std::string slices_on(const std::string& node, const std::string& container, const std::string& parts) {
  return fmt::format(R"({{"v":1,"node":"{}","containers":{{"{}":{{"parts":[{}],"isolation":"memory+compute",)"
                     R"("policy":"fixed-share","latency_class":"latency"}}}}}})",
                     node, container, parts);
}
std::string part(const char* device, uint64_t memory, unsigned share) {
  return fmt::format(R"(["{}",{},{}])", device, memory, share);
}

SeenPod pod(const std::string& annotation, const std::string& node = "n1") {
  SeenPod out;
  out.meta.name_space = "a";
  out.meta.name = "web-0";
  out.meta.uid = "u1";
  if (!annotation.empty()) out.meta.annotations[kubernetes::slices_annotation] = annotation;
  out.node = node;
  return out;
}

StartContext context() {
  return {.node = "n1",
          .slot = {17},
          .devices = {{*parse_uuid(first_device), 16_GiB}, {*parse_uuid(second_device), 16_GiB}}};
}
StartDecision decide(const SeenPod& seen, const std::string& container = "main") {
  const StartCandidate candidate{.container = {"a", "web-0", container}, .pod = seen};
  return decide_start(context(), std::span(&candidate, 1));
}

TEST(ContainerStart, requests_the_slice_in_the_annotation) {
  const auto decision = decide(pod(slices_on(
      "n1", "main", part(second_device, 3ull << 30, 2500) + "," + part(first_device, 1ull << 30, 500))));
  ASSERT_EQ(decision.kind, Kind::grant) << decision.message;
  const api::SliceRequest& request = decision.request;
  ASSERT_EQ(request.placed.size(), 2u);
  EXPECT_EQ(request.placed[0].device, second_device);
  EXPECT_EQ(request.placed[0].memory_bytes, 3ull << 30);
  EXPECT_EQ(request.placed[1].share_bp, 500u);
  EXPECT_EQ(request.slot, "s017");
  EXPECT_EQ(request.lifetime, Lifetime::until_deleted);
  EXPECT_EQ(request.amounts.latency_class, LatencyClass::latency);
  EXPECT_EQ(request.amounts.isolation, Isolation::memory_and_compute);
  EXPECT_EQ(*request.holder->pod, (PodContainer{"a", "web-0", "u1", "main"}));
}

TEST(ContainerStart, a_slice_has_the_labels_of_its_pod_but_not_those_of_one_replica) {
  SeenPod seen = pod(slices_on("n1", "main", part(first_device, 1 << 30, 0)));
  seen.meta.labels = {{"team", "x"},
                      {"empty", ""},
                      {"pod-template-hash", "5d8"},
                      {"carve.dev/sliced", "true"},
                      {std::string(max_label_bytes + 1, 'k'), "v"},
                      {"carve.dev/kind", "service"}};
  const std::map<std::string, std::string> expected = {
      {"team", "x"}, {"empty", ""}, {"carve.dev/kind", "service"}};
  EXPECT_EQ(decide(seen).request.labels, expected);
  for (int i = 0; i < 40; ++i) seen.meta.labels[fmt::format("l{}", i)] = "v";
  EXPECT_EQ(decide(seen).request.labels.size(), 16u);
}

TEST(ContainerStart, the_account_is_that_of_the_label_or_the_namespace) {
  SeenPod seen = pod(slices_on("n1", "main", part(first_device, 1 << 30, 0)));
  EXPECT_EQ(decide(seen).request.account, "a");
  seen.meta.labels[kubernetes::account_label] = "research";
  EXPECT_EQ(decide(seen).request.account, "research");
}

TEST(ContainerStart, requests_a_whole_device_without_amounts) {
  const std::string annotation = fmt::format(
      R"({{"v":1,"node":"n1","containers":{{"main":{{"parts":[["{}",0,10000]],"exclusive":true}}}}}})",
      first_device);
  const auto decision = decide(pod(annotation));
  ASSERT_EQ(decision.kind, Kind::grant) << decision.message;
  EXPECT_TRUE(decision.request.amounts.exclusive);
  EXPECT_EQ(decision.request.placed[0].share_bp, 0u);
}

TEST(ContainerStart, rejects_slices_of_other_nodes_and_containers) {
  const std::string good = part(first_device, 1 << 30, 0);
  struct Row {
    SeenPod pod;
    const char* message;
  };
  const Row rows[] = {
      {pod(""), "pod a/web-0 was not placed by Carve"},
      {pod("{"), "pod a/web-0: carve.dev/slices"},
      {pod(R"({"v":2})"), "carve.dev/slices version 2: this program reads 1"},
      {pod(slices_on("n2", "main", good)), "was placed on node n2, but this is node n1"},
      {pod(slices_on("n1", "main", good), "n2"), "was placed on node n2, but this is node n1"},
      {pod(slices_on("n1", "other", good)), "carve.dev/slices has no slice for container main"},
      {pod(slices_on("n1", "main", "")), "it lists no device"},
      {pod(slices_on("n1", "main", part("GPU-00000000-0000-0000-0000-000000000003", 1, 0))),
       "this node has no device GPU-00000000-0000-0000-0000-000000000003"},
      {pod(slices_on("n1", "main", part(first_device, (16ull << 30) + 1, 0))),
       "which has only 16 GiB usable"},
      {pod(slices_on("n1", "main", good + "," + good)), "twice"}};
  for (const Row& row : rows) {
    const auto decision = decide(row.pod);
    EXPECT_EQ(decision.kind, Kind::refuse) << row.message;
    EXPECT_THAT(decision.message, HasSubstr(row.message));
  }
}

TEST(ContainerStart, waits_until_kubelet_reports_one_container_of_an_existing_pod) {
  const SeenPod running = pod(slices_on("n1", "main", part(first_device, 1 << 30, 0)));
  SeenPod over = running, deleting = running;
  over.is_over = true;
  deleting.meta.is_deleting = true;
  const ContainerName name{"a", "web-0", "main"}, other{"a", "web-1", "main"};
  EXPECT_EQ(decide_start(context(), {}).kind, Kind::retry);
  const std::vector<std::pair<std::vector<StartCandidate>, Kind>> rows = {
      {{{name, std::nullopt}}, Kind::retry},
      {{{name, over}}, Kind::retry},
      {{{name, running}, {other, running}}, Kind::retry},
      {{{name, running}, {other, over}}, Kind::grant},
      {{{name, running}, {other, std::nullopt}}, Kind::grant},
      {{{name, running}, {other, deleting}}, Kind::grant},
      {{{name, deleting}}, Kind::grant},  // The pod is deleted while it starts.
  };
  for (size_t row = 0; row < rows.size(); ++row)
    EXPECT_EQ(decide_start(context(), rows[row].first).kind, rows[row].second) << row;
}

TEST(ContainerStart, finds_the_container_among_duplicates_and_other_resources) {
  const std::vector<ContainerDevices> all = {{{"a", "web-0", "main"}, slot_resource, {"s016", "s017"}},
                                             {{"a", "web-0", "main"}, slot_resource, {"s017"}},
                                             {{"a", "web-1", "main"}, slot_resource, {"s018"}},
                                             {{"a", "web-2", "main"}, "nvidia.com/gpu", {"s017"}}};
  EXPECT_THAT(containers_with(all, {17}), ElementsAre(ContainerName{"a", "web-0", "main"}));
  EXPECT_THAT(containers_with(all, {19}), IsEmpty());
}

TEST(ContainerStart, waits_for_a_temporary_rejection_of_the_agent) {
  for (const FailureKind kind :
       {FailureKind::insufficient_capacity, FailureKind::failed_precondition, FailureKind::unavailable})
    EXPECT_TRUE(may_pass(api::problem_of(kind, "")));
  for (const FailureKind kind :
       {FailureKind::invalid_argument, FailureKind::already_exists, FailureKind::permission_denied})
    EXPECT_FALSE(may_pass(api::problem_of(kind, "")));
  EXPECT_TRUE(may_pass({.type = "carve:no-agent"}));
}

TEST(PodObject, has_a_node_and_a_phase) {
  const auto pod = read_pod_object(
      R"({"metadata":{"name":"p","namespace":"a","uid":"u","annotations":{"x":"y"}},"spec":{"nodeName":"n1",)"
      R"("containers":[{"name":"main"}]},"status":{"phase":"Succeeded","conditions":[{"phase":"Running"}]}})");
  ASSERT_TRUE(pod) << pod.error();
  EXPECT_EQ(pod->node, "n1");
  EXPECT_TRUE(pod->is_over);
  EXPECT_EQ(pod->meta.annotations.at("x"), "y");
  for (const char* bad : {"", "{", "[]", R"({"metadata":{"name":"p"}})"})
    EXPECT_FALSE(read_pod_object(bad)) << bad;
}

}  // namespace
}  // namespace carve::kubernetes::node
