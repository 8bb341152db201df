#include "node/reconcile/energy.h"

#include <gmock/gmock.h>

#include <numeric>
#include <random>

namespace carve::node {
namespace {

using testing::ElementsAre;

TEST(Energy, is_divided_by_busy_time_without_the_idle_time) {
  const EnergyUse uses[] = {{.busy_ns = 300}, {.busy_ns = 100}, {}};
  EXPECT_THAT(split_energy(1000, 1000, uses), ElementsAre(300u, 100u, 0u));
}

TEST(Energy, of_overlapping_work_is_shared) {
  const EnergyUse uses[] = {{.busy_ns = 900}, {.busy_ns = 900}, {.busy_ns = 5000}};
  EXPECT_THAT(split_energy(2800, 1000, uses), ElementsAre(900u, 900u, 1000u));
}

TEST(Energy, of_a_whole_device_belongs_to_its_slice) {
  const EnergyUse uses[] = {{.busy_ns = 1, .has_whole_device = true}};
  EXPECT_THAT(split_energy(1234, 1000, uses), ElementsAre(1234u));
}

TEST(Energy, is_not_divided_without_slices_or_time) {
  EXPECT_TRUE(split_energy(5, 1000, {}).empty());
  const EnergyUse uses[] = {{.busy_ns = 7}};
  EXPECT_THAT(split_energy(5, 0, uses), ElementsAre(0u));
}

TEST(Energy, of_all_slices_is_never_more_than_the_devices) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 2000; ++i) {
    std::vector<EnergyUse> uses(random() % 17);
    for (EnergyUse& use : uses) use.busy_ns = random() >> (random() % 64);
    const uint64_t energy = random() >> (random() % 64);
    const auto parts = split_energy(energy, random() >> (8 + random() % 56), uses);
    EXPECT_LE(std::accumulate(parts.begin(), parts.end(), uint64_t{0}), energy);
  }
}

}  // namespace
}  // namespace carve::node
