#include "kubernetes/coordinator/settings/settings.h"

#include <gmock/gmock.h>

namespace carve::kubernetes::coordinator {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(Settings, missing_keys_have_defaults) {
  const auto read = read_settings({});
  ASSERT_TRUE(read);
  EXPECT_EQ(*read, ClusterSettings{});
  EXPECT_FALSE(read->plain_nvidia_is_whole) << "only nvidia.com/gpu belongs to NVIDIA";
}

TEST(Settings, every_key_is_parsed) {
  const auto read = read_settings({{"gpuMemoryUnit", "128MiB"},
                                   {"gpuMemoryUnitWhenFree", "1GiB"},
                                   {"dialects", "carve, ack"},
                                   {"sharing", "disabled"},
                                   {"plainNvidiaGpu", "whole"},
                                   {"initContainers", "refuse"},
                                   {"strategy", "spread"},
                                   {"schedulers", "carve-scheduler,default-scheduler"},
                                   {"runtimeClasses", "nvidia"}});
  ASSERT_TRUE(read) << read.error().front().message;
  EXPECT_EQ(read->unit, MemoryUnit::mib_128);
  EXPECT_EQ(read->when_free, MemoryUnit::gib);
  EXPECT_EQ(read->dialects, (std::set{dialects::Dialect::carve, dialects::Dialect::ack}));
  EXPECT_FALSE(read->is_sharing);
  EXPECT_EQ(read->strategy, Strategy::spread);
  const dialects::PodSettings pods = pod_settings(*read, {"NVIDIA A10"});
  EXPECT_EQ(pods.unit, MemoryUnit::mib_128);
  EXPECT_TRUE(pods.plain_nvidia_is_whole);
  EXPECT_THAT(pods.schedulers, ElementsAre("carve-scheduler", "default-scheduler"));
  EXPECT_THAT(pods.runtime_classes, ElementsAre("nvidia"));
  EXPECT_THAT(pods.models, ElementsAre("NVIDIA A10"));
}

TEST(Settings, an_invalid_value_is_rejected_with_the_reason) {
  const std::pair<SettingsData, const char*> rows[] = {
      {{{"gpuMemoryUnit", "64MiB"}}, "gpuMemoryUnit 64MiB: must be 1GiB or 128MiB"},
      {{{"gpuMemoryUnitWhenFree", "2GiB"}}, "gpuMemoryUnitWhenFree 2GiB: must be 1GiB or 128MiB"},
      {{{"dialects", "ack, nvidia"}}, "dialects nvidia: must be a list of carve, ack, vke and hami"},
      {{{"sharing", "yes"}}, "sharing yes: must be disabled or enabled"},
      {{{"plainNvidiaGpu", ""}}, "plainNvidiaGpu : must be ignore or whole"},
      {{{"initContainers", "own"}}, "initContainers own: must be refuse or share"},
      {{{"strategy", "best"}}, "strategy best: must be binpack, spread"},
      {{{"schedulers", " , "}}, "must name at least one"},
      {{{"schedulers", "A_b"}}, "schedulers A_b: a name may contain only a to z"},
      {{{"gpuMemoryunit", "1GiB"}},
       "unknown setting 'gpuMemoryunit'; the settings are dialects, gpuMemoryUnit"}};
  for (const auto& [data, message] : rows) {
    const auto read = read_settings(data);
    ASSERT_FALSE(read) << message;
    EXPECT_THAT(read.error().front().message, HasSubstr(message));
  }
  EXPECT_EQ(read_settings({{"sharing", "1"}, {"strategy", "1"}}).error().size(), 2u);
}

TEST(Settings, the_unit_stays_while_pods_use_it) {
  const ClusterSettings before, after{.unit = MemoryUnit::mib_128};
  const PodsInUnits pods{{1u << 30, {"a/web-0", "a/web-1", "b/x", "b/y"}}, {128u << 20, {"b/z"}}};
  const auto errors = refuse_change(before, after, pods);
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors[0].message,
            "gpuMemoryUnit stays 1GiB: 4 pods were created with units of 1 GiB: a/web-0, a/web-1, b/x, ...; "
            "delete them, or set gpuMemoryUnitWhenFree");
  EXPECT_THAT(refuse_change(before, before, pods), IsEmpty());
  EXPECT_THAT(refuse_change(before, after, {{128u << 20, {"b/z"}}}), IsEmpty());
}

TEST(Settings, a_pending_unit_lists_the_blocking_pods) {
  ClusterSettings settings;
  EXPECT_FALSE(pending_unit(settings, {}));
  settings.when_free = MemoryUnit::mib_128;
  const auto waits = pending_unit(settings, {{1u << 30, {"a/web-0"}}});
  ASSERT_TRUE(waits);
  EXPECT_EQ(pending_text(*waits),
            R"({"v":1,"gpuMemoryUnit":{"desired":"128MiB","effective":"1GiB","blocked_by":["a/web-0"]}})");
  EXPECT_THAT(pending_unit(settings, {{128u << 20, {"b/z"}}})->blocked_by, IsEmpty());
  settings.when_free = MemoryUnit::gib;
  EXPECT_THAT(pending_unit(settings, {{1u << 30, {"a/web-0"}}})->blocked_by, IsEmpty())
      << "it is in effect already";
}

}  // namespace
}  // namespace carve::kubernetes::coordinator
