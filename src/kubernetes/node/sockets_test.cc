// Tests the gRPC calls: the plugin with kubelet, pod resources, and the runtime.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <condition_variable>
#include <filesystem>
#include <thread>

#include "kubernetes/node/container_reporter.h"
#include "kubernetes/node/plugin/plugin_registrar.h"
#include "kubernetes/node/podresources/pod_resources.h"
#include "kubernetes/node/rules/slot_choice.h"
#include "kubernetes/node/testing/agent_api_fake.h"
#include "kubernetes/node/testing/kubelet_fake.h"

namespace carve::kubernetes::node {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

// Waits until `is_true` returns true. Returns false after a minute.
bool until(const std::function<bool()>& is_true) {
  for (int i = 0; i < 6000; ++i) {
    if (is_true()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

class SocketsTest : public testing::Test {
 protected:
  SocketsTest() {
    char name[] = "/tmp/ckf-XXXXXX";
    folder = mkdtemp(name);
    kubelet = std::make_unique<KubeletFake>(folder);
  }
  ~SocketsTest() override {
    registrar.reset();
    kubelet.reset();
    std::filesystem::remove_all(folder);
  }
  void begin() {
    registrar = std::make_unique<PluginRegistrar>(
        folder,
        PluginHandlers{.prefer = [](const auto& available, const auto& must,
                                    size_t size) { return choose_slots({}, available, must, size); },
                       .allocated = [this](ContainerSlot slot) -> Outcome<std::optional<api::SlotFiles>> {
                         allocated.push_back(text(slot));
                         return files;
                       },
                       .starting = [this](ContainerSlot slot, const std::function<bool()>&) -> Outcome<void> {
                         if (!refusal.empty())
                           return failure(FailureKind::failed_precondition, "{}: {}", text(slot), refusal);
                         return {};
                       }});
  }

  std::string folder;
  std::unique_ptr<KubeletFake> kubelet;
  std::unique_ptr<PluginRegistrar> registrar;
  std::vector<std::string> allocated;
  std::string refusal;
  std::optional<api::SlotFiles> files;  // For a runtime without CDI.
};

TEST_F(SocketsTest, the_plugin_waits_for_kubelet_and_serves_slots) {
  begin();
  kubelet->start();
  ASSERT_TRUE(until([&] { return kubelet->registrations().size() == 1; }));
  const KubeletFake::Registration registered = kubelet->registrations().front();
  EXPECT_EQ(registered.version, "v1beta1");
  EXPECT_EQ(registered.resource, "carve.dev/slot");
  EXPECT_TRUE(registered.calls_before_start && registered.asks_for_preferences);
  EXPECT_EQ(kubelet->devices(), all_slots());
  EXPECT_TRUE(kubelet->is_stream_open());

  const auto answer = kubelet->allocate({"s017"});
  ASSERT_TRUE(answer) << answer.error();
  EXPECT_THAT(answer->cdi_devices, ElementsAre("carve.dev/slot=s017"));
  EXPECT_THAT(answer->environment, ElementsAre(Pair("NVIDIA_VISIBLE_DEVICES", "void")));
  EXPECT_THAT(allocated, ElementsAre("s017"));
  files = {.mounts = {{"/node/attach/s018", "/run/carve", false}, {"/node/sim", "/run/simgpu", true}},
           .device_nodes = {"/dev/nvidia0"}};
  const auto without_cdi = kubelet->allocate({"s018"});
  ASSERT_TRUE(without_cdi) << without_cdi.error();
  EXPECT_THAT(
      without_cdi->environment,
      testing::UnorderedElementsAre(Pair("NVIDIA_VISIBLE_DEVICES", "void"),
                                    Pair("CUDA_VISIBLE_DEVICES", "0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15")));
  EXPECT_THAT(without_cdi->cdi_devices, ElementsAre());
  EXPECT_THAT(without_cdi->mounts,
              ElementsAre("/node/attach/s018:/run/carve:ro", "/node/sim:/run/simgpu:rw"));
  EXPECT_THAT(without_cdi->devices, ElementsAre("/dev/nvidia0"));
  EXPECT_THAT(kubelet->allocate({"../s1"}).error(), HasSubstr("there is no slot '../s1'"));
  EXPECT_THAT(*kubelet->prefer({"s003", "s002"}, {}, 1), ElementsAre("s002"));
  EXPECT_THAT(*kubelet->prefer({"s003", "s002"}, {}, -1), ElementsAre());

  EXPECT_TRUE(kubelet->start_container({"s017"}));
  EXPECT_THAT(kubelet->start_container({"s256"}).error(), HasSubstr("there is no slot 's256'"));
  EXPECT_THAT(kubelet->start_container({"s001", "s002"}).error(), HasSubstr("the container has 2 slots"));
  refusal = "pod a/b was not placed by Carve";
  EXPECT_EQ(kubelet->start_container({"s017"}).error(), "s017: pod a/b was not placed by Carve");
}

TEST_F(SocketsTest, the_plugin_registers_with_a_restarted_kubelet) {
  kubelet->start();
  begin();
  for (int start = 0; start < 3; ++start) {
    ASSERT_TRUE(until([&] { return kubelet->registrations().size() == 1; })) << start;
    EXPECT_EQ(kubelet->devices().size(), max_container_slots);
    kubelet->stop();
    kubelet->start();
  }
}

TEST_F(SocketsTest, a_removed_plugin_socket_is_created_again) {
  kubelet->start();
  begin();
  ASSERT_TRUE(until([&] { return kubelet->registrations().size() == 1; }));
  EXPECT_EQ(kubelet->devices().size(), max_container_slots);
  std::filesystem::remove(folder + "/" + plugin_socket_name);
  ASSERT_TRUE(until([&] { return kubelet->registrations().size() == 2; }));
  EXPECT_TRUE(until([&] { return !kubelet->is_stream_open(); }));
  EXPECT_TRUE(kubelet->allocate({"s000"}));
}

TEST_F(SocketsTest, the_plugin_disappears_when_its_program_ends) {
  kubelet->start();
  begin();
  ASSERT_TRUE(until([&] { return kubelet->registrations().size() == 1; }));
  EXPECT_EQ(kubelet->devices().size(), max_container_slots);
  registrar.reset();
  EXPECT_TRUE(until([&] { return !kubelet->is_stream_open(); })) << "kubelet counts no slot";
}

TEST_F(SocketsTest, pod_resources_are_read_or_fail_with_a_message) {
  const auto list = PodResources::at(kubelet->pod_resources_socket());
  EXPECT_THAT(list->list().error(), HasSubstr("kubelet's pod resources at"));
  kubelet->start();
  const std::vector<ContainerDevices> resources = {{{"a", "p", "c"}, "carve.dev/slot", {"s001"}},
                                                   {{"a", "p", "c"}, "carve.dev/slot", {"s001", "s002"}}};
  kubelet->set_resources(resources);
  ASSERT_TRUE(until([&] { return list->list().has_value(); })) << "the client connects again";
  const auto read = list->list();
  EXPECT_THAT(containers_with(*read, {1}), ElementsAre(ContainerName{"a", "p", "c"}));
  EXPECT_EQ(read->size(), 2u);
  kubelet->refuse_resources(1);
  EXPECT_THAT(list->list().error(), HasSubstr("rejected by rate limit"));
  EXPECT_TRUE(list->list());
}

TEST_F(SocketsTest, running_containers_are_reported_to_the_agent_and_bypasses_to_the_pod) {
  kubelet->start();
  AgentApiFake agent;
  api::Slice slice;
  slice.name = "a";
  slice.slot = "s017";
  slice.holder = Holder{.pod = PodContainer{"n", "p", "u1", "main"}, .claim = {}};
  agent.state.slices = {slice};
  kubelet->set_containers({{{"c1", {{pod_uid_label, "u1"}, {container_name_label, "main"}}}, getpid() + 0u},
                           {{"c2", {{pod_uid_label, "u1"}, {container_name_label, "side"}}}, getpid() + 0u},
                           {{"c3", {{pod_uid_label, "u2"}, {container_name_label, "main"}}}, getpid() + 0u}});
  const auto runtime = ContainerRuntime::at(kubelet->runtime_socket());
  std::mutex mutex;
  std::vector<std::string> not_mounted;
  RuntimeCapability found;
  {
    ContainerReporter reporter(agent, *runtime,
                               {.found =
                                    [&](const RuntimeCapability& capability) {
                                      const std::lock_guard lock(mutex);
                                      found = capability;
                                    },
                                .not_mounted =
                                    [&](const PodContainer& pod, const std::string& message) {
                                      const std::lock_guard lock(mutex);
                                      not_mounted.push_back(pod.name + ": " + message);
                                    }});
    // The test's own process acts as the container's process and has no attach directory mounted.
    ASSERT_TRUE(until([&] {
      const std::lock_guard lock(mutex);
      return !not_mounted.empty() && found.has_cdi;
    }));
    EXPECT_TRUE(reporter.capability().has_cdi);
  }
  EXPECT_EQ(not_mounted.size(), 1u);
  EXPECT_THAT(not_mounted[0], HasSubstr("p: container main runs without its slice"));
  EXPECT_TRUE(agent.containers.empty());
}

}  // namespace
}  // namespace carve::kubernetes::node
