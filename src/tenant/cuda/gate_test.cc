#include "tenant/cuda/gate.h"

#include <chrono>
#include <thread>

#include "tenant/test_tenant.h"

namespace carve::tenant {
namespace {

constexpr uint64_t ms = 1'000'000;

TEST(Gate, open_means_go_and_closed_means_wait_while_the_agent_lives) {
  EXPECT_TRUE(may_launch(true, 0, 0, 0, 0, 0));
  EXPECT_FALSE(may_launch(false, 1000 * ms, 900 * ms, 0, 0, 0));
  EXPECT_FALSE(may_launch(false, 1000 * ms, 800 * ms, 0, 0, 0)) << "200 ms is not stale yet";
}

TEST(Gate, without_an_agent_the_timetable_decides_and_without_a_timetable_everybody_goes) {
  EXPECT_TRUE(may_launch(false, 1001 * ms, 800 * ms, 0, 0, 0));
  const struct {
    uint64_t now, offset;
    bool go;
  } table[] = {{1005, 5, true},  {1009, 5, true},  {1010, 5, false},
               {1004, 5, false}, {1095, 95, true}, {1101, 97, true}};
  for (const auto& row : table)
    EXPECT_EQ(may_launch(false, row.now * ms, 0, 100 * ms, row.offset * ms, 5 * ms), row.go) << row.now;
}

using Launches = DriverTest;

TEST_F(Launches, wait_at_a_closed_gate_of_their_own_device_only) {
  Attached tenant(2);
  static std::atomic<int> launched;
  launched = 0;
  on<&cuLaunchKernel_ptsz>([](CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                              unsigned, CUstream, void**, void**) {
    ++launched;
    return CUDA_SUCCESS;
  });
  const auto launch = [] {
    return cuLaunchKernel_ptsz(nullptr, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr);
  };
  tenant.heartbeat->monotonic_ns = UINT64_MAX;  // Alive.
  tenant.control->devices[1].gate = static_cast<uint64_t>(shm::Gate::closed);
  EXPECT_EQ(launch(), CUDA_SUCCESS);
  EXPECT_EQ(launched, 1);
  std::jthread other([&] {
    current_device = 1;
    launch();
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  EXPECT_EQ(launched, 1);
  tenant.control->devices[1].gate = static_cast<uint64_t>(shm::Gate::open);
  other.join();
  EXPECT_EQ(launched, 2);
}

}  // namespace
}  // namespace carve::tenant
