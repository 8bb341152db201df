#include "controller/jobs/forecast_capacity.h"

#include <gmock/gmock.h>

#include "controller/nodes/testing/node_objects.h"
#include "controller/objects/testing/journals.h"
#include "wire/api/json.h"

namespace carve::controller {
namespace {

// Returns a node with two devices of 16 GiB.
SliceForecast two_devices() {
  NoJournal journal;
  JournaledRegistry objects(journal, {}, 0);
  EXPECT_TRUE(
      objects.add({.key = {objects::Kind::node, "default", "n1"}, .status = two_devices_of_16_gib()}));
  return SliceForecast(objects);
}

workload::JobNeed slices(uint32_t count, uint32_t percent) {
  const Amounts amounts{
      .memory_bytes = (1_GiB).count, .share_bp = percent * 100, .policy = Policy::fixed_share};
  return {.groups = {{.slices = count, .amounts = amounts}}};
}

TEST(ForecastCapacity, takes_all_slices_of_a_job_or_none) {
  ForecastCapacity capacity(two_devices(), "", {});
  EXPECT_FALSE(capacity.take(1, slices(5, 50)));
  EXPECT_TRUE(capacity.take(2, slices(4, 50)));
  EXPECT_FALSE(capacity.take(3, slices(1, 5)));
  capacity.release(2);
  EXPECT_TRUE(capacity.take(3, slices(1, 5)));
}

TEST(ForecastCapacity, takes_slices_of_several_sizes_or_none) {
  ForecastCapacity capacity(two_devices(), "", {});
  workload::JobNeed need = slices(2, 30);
  need.groups.push_back(slices(2, 80).groups.front());
  EXPECT_FALSE(capacity.take(1, need));
  EXPECT_THAT(capacity.problem(need), testing::HasSubstr("slice 4 of 4: node n1: "));
  need.groups.back() = slices(2, 40).groups.front();
  EXPECT_TRUE(capacity.take(2, need));
  EXPECT_FALSE(capacity.take(3, slices(1, 65)));
  capacity.release(2);
  EXPECT_TRUE(capacity.take(3, slices(4, 50)));
}

TEST(ForecastCapacity, takes_and_releases_whole_devices) {
  ForecastCapacity capacity(two_devices(), "", {});
  workload::JobNeed whole{.groups = {{.slices = 2, .amounts = {.exclusive = true}}}};
  EXPECT_TRUE(capacity.take(1, whole));
  EXPECT_FALSE(capacity.take(2, slices(1, 5)));
  capacity.release(1);
  EXPECT_TRUE(capacity.take(2, slices(1, 5)));
  whole.groups = {{.slices = 1, .amounts = {.devices = 2, .exclusive = true}}};
  EXPECT_FALSE(capacity.take(3, whole));
}

TEST(ForecastCapacity, holds_back_a_job_that_was_just_rejected) {
  ForecastCapacity capacity(two_devices(), "", {7});
  EXPECT_FALSE(capacity.take(7, slices(1, 5)));
  EXPECT_TRUE(capacity.take(8, slices(1, 5)));
}

TEST(ForecastCapacity, takes_the_same_places_in_a_copy_or_none) {
  ForecastCapacity now(two_devices(), "", {});
  ASSERT_TRUE(now.take(1, slices(2, 80)));
  const auto then = now.copy();
  then->release(1);
  ASSERT_TRUE(now.take(2, slices(2, 20)));
  EXPECT_TRUE(then->take_same(2, now));
  EXPECT_TRUE(then->take(3, slices(2, 80)));
  EXPECT_FALSE(then->take_same(1, now));
}

TEST(ForecastCapacity, counts_the_live_slices) {
  SliceForecast forecast = two_devices();
  forecast.replace_slices(
      "n1", {{.parts = {{"GPU-00000000-0000-0000-0000-000000000001", uint64_t{16} << 30, 5000}}},
             {.parts = {{"GPU-00000000-0000-0000-0000-000000000002"}}, .is_exclusive = true}});
  ForecastCapacity capacity(std::move(forecast), "", {});
  EXPECT_FALSE(capacity.take(1, slices(1, 5)));
  EXPECT_THAT(capacity.problem(slices(2, 5)), testing::HasSubstr("slice 1 of 2: node n1: "));
  EXPECT_EQ(capacity.forecast().capacity("").compute_bp, 20000u);
}

}  // namespace
}  // namespace carve::controller
