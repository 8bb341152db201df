// Scenarios: a program stays within its limit in every way of allocating, and the guard's figures equal the
// module's.
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

#include "guard_scenarios.h"

using namespace guard_test;

namespace {

constexpr uint64_t quota = 1024 * MiB, tolerance = 64 * MiB;

std::vector<GuardLimit> one_device(uint64_t bytes = quota) {
  return {{.minor = 0, .bytes = {bytes}, .fatal = {bytes + tolerance}}};
}

Driver driver(unsigned device = 0) { return Driver::open(control_node, device_nodes[device], device); }

// Reports which step of an attacker failed by its exit status.
#define STEP(condition) \
  if (!(condition)) return __COUNTER__ + 1

bool exited_well(int status) {
  if (WIFEXITED(status) && WEXITSTATUS(status) != 0) fprintf(stderr, "# step %d\n", WEXITSTATUS(status));
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// The guard's figures, which children read through the maps as the main process does.
bool is_equal(const TestSlice& slice) {
  const auto usage = slice.usage();
  return usage.parts[0].used.count == module_pinned(0) && usage.parts[0].committed.count == module_pinned(0);
}

}  // namespace

SCENARIO(quota) {
  TestSlice slice(1, one_device());
  EXPECT(exited_well(run_in(slice, [&] {
    const Driver rm = driver();
    STEP(rm.is_ready());
    for (int round = 0; round < 3; ++round) {
      STEP(rm.alloc(1, 512 * MiB) == 0);
      STEP(is_equal(slice));
      STEP(rm.alloc(2, 512 * MiB) == 0);
      STEP(is_equal(slice) && slice.usage().parts[0].used.count == quota);
      STEP(rm.alloc(3, 1) == -ENOMEM);
      STEP(is_equal(slice));
      STEP(rm.free(1) == 0);
      STEP(is_equal(slice));
      STEP(rm.alloc(3, 3 * MiB) == 0);  // Contiguous.
      STEP(is_equal(slice));
      STEP(rm.free(2) == 0 && rm.free(3) == 0);
      STEP(is_equal(slice) && slice.usage().parts[0].used.count == 0);
    }
    return 0;
  })));
  EXPECT(slice.usage().refused == 3);
  EXPECT(slice.usage().parts[0].peak.count == quota);
  EXPECT(findings(GUARD_BEYOND) == 0);
}

SCENARIO(parent_free) {
  TestSlice slice(2, one_device());
  EXPECT(exited_well(run_in(slice, [&] {
    const Driver rm = driver();
    STEP(rm.is_ready());
    STEP(rm.alloc(1, 1000 * MiB) == 0 && rm.alloc(2, 24 * MiB) == 0);
    STEP(rm.free(device_handle) == 0);
    STEP(is_equal(slice) && slice.usage().parts[0].used.count == 0);
    const Driver again = driver();
    STEP(again.alloc(1, quota) == 0 && again.alloc(2, 2 * MiB) == -ENOMEM);
    return 0;
  })));
  EXPECT(module_pinned(0) == 0 && is_equal(slice));
}

SCENARIO(duplicate_keeps_its_charge) {
  TestSlice slice(3, one_device());
  EXPECT(exited_well(run_in(slice, [&] {
    const Driver rm = driver();
    STEP(rm.alloc(1, quota) == 0 && rm.dup(2, 1) == 0 && rm.free(1) == 0);
    STEP(is_equal(slice) && slice.usage().parts[0].used.count == quota);
    STEP(rm.alloc(3, 2 * MiB) == -ENOMEM);
    STEP(rm.free(2) == 0 && is_equal(slice) && slice.usage().parts[0].used.count == 0);
    return 0;
  })));
}

SCENARIO(hidden_reference_keeps_its_charge) {
  TestSlice slice(4, one_device());
  EXPECT(exited_well(run_in(slice, [&] {
    const Driver rm = driver();
    STEP(rm.alloc(1, quota) == 0 && rm.alloc_class(2, 1, 0x2) == 0 && rm.free(1) == 0);
    STEP(is_equal(slice) && slice.usage().parts[0].used.count == quota);
    STEP(rm.alloc(3, 2 * MiB) == -ENOMEM);
    STEP(rm.free(2) == 0 && is_equal(slice) && slice.usage().parts[0].used.count == 0);
    return 0;
  })));
}

SCENARIO(every_form_of_a_request) {
  TestSlice slice(5, one_device());
  EXPECT(exited_well(run_in(slice, [&] {
    const Driver rm = driver();
    const uint64_t more = quota + 2 * MiB;
    STEP(rm.alloc(1, more) == -ENOMEM);
    STEP(rm.alloc(1, more, Entry::transfer) == -ENOMEM);
    STEP(rm.alloc(1, more, Entry::compat) == -ENOMEM);
    STEP(rm.alloc_short(1, more) == -ENOMEM);
    STEP(rm.alloc_memory(1, more) == -ENOMEM);
    STEP(rm.heap_alloc(1, more) == -ENOMEM);
    STEP(rm.alloc(1, UINT64_MAX) == -ENOMEM);
    STEP(rm.alloc(1, 2 * MiB, Entry::transfer) == 0 && is_equal(slice));
    STEP(rm.alloc(2, 2 * MiB, Entry::compat) == 0 && is_equal(slice));
    STEP(rm.alloc_short(3, 2 * MiB) == 0 && is_equal(slice));
    STEP(rm.alloc_memory(4, 2 * MiB) == 0 && is_equal(slice));
    STEP(rm.heap_alloc(5, 2 * MiB) == 0 && is_equal(slice));
    STEP(rm.alloc_unread(6, 2 * MiB) == 0 && is_equal(slice));
    STEP(slice.usage().parts[0].used.count == 12 * MiB);
    return 0;
  })));
  EXPECT(slice.usage().refused == 7 && slice.usage().unparsed == 1);
}

SCENARIO(failed_allocation_leaves_no_charge) {
  TestSlice slice(6, one_device(64 * 1024 * MiB));  // More than the device has.
  EXPECT(exited_well(run_in(slice, [&] {
    const Driver rm = driver();
    STEP(rm.alloc(1, 32 * 1024 * MiB) == status_no_memory);
    STEP(is_equal(slice) && slice.usage().parts[0].committed.count == 0);
    return 0;
  })));
}

SCENARIO(unannounced_memory_is_counted) {
  TestSlice slice(7, one_device(32 * MiB));
  EXPECT(exited_well(run_in(slice, [&] {
    const Driver rm = driver();
    for (uint32_t i = 0; i < 4; ++i)
      STEP(rm.alloc_class(10 + i, device_handle, 0xa06c) == 0 && is_equal(slice));
    STEP(rm.alloc(1, 1) == -ENOMEM);
    STEP(rm.alloc_class(20, device_handle, 0xa06c) == 0);  // Within the tolerance.
    STEP(slice.usage().parts[0].used.count == 40 * MiB);
    return 0;
  })));
  EXPECT(findings(GUARD_BEYOND) == 0);
  EXPECT(is_equal(slice));
}

SCENARIO(evictable_memory_is_not_charged) {
  TestSlice slice(8, one_device(1 * MiB));
  EXPECT(exited_well(run_in(slice, [&] {
    const Driver rm = driver();
    STEP(rm.alloc_class(1, device_handle, 0xfab0) == 0);
    STEP(slice.usage().parts[0].used.count == 0 && is_equal(slice));
    return 0;
  })));
}

SCENARIO(racing_threads_within_the_quota) {
  TestSlice slice(9, one_device(1600 * 2 * MiB));
  EXPECT(exited_well(run_in(slice, [&] {
    const Driver rm = driver();
    std::vector<std::thread> threads;
    std::atomic<int> failed{0};
    for (uint32_t t = 0; t < 8; ++t)
      threads.emplace_back([&, t] {
        for (uint32_t i = 0; i < 200; ++i) failed += rm.alloc(1000 * (t + 1) + i, 2 * MiB) != 0;
      });
    for (std::thread& thread : threads) thread.join();
    STEP(failed == 0);
    STEP(is_equal(slice) && slice.usage().parts[0].used.count == 1600 * 2 * MiB);
    STEP(rm.alloc(1, 1) == -ENOMEM);
    return 0;
  })));
  EXPECT(findings(GUARD_BEYOND) == 0);
  EXPECT(is_equal(slice));
}

SCENARIO(racing_threads_beyond_the_quota) {
  TestSlice slice(10, one_device(200 * 2 * MiB));
  EXPECT(exited_well(run_in(slice, [&] {
    const Driver rm = driver();
    std::vector<std::thread> threads;
    std::atomic<int> allocated{0}, other{0};
    for (uint32_t t = 0; t < 8; ++t)
      threads.emplace_back([&, t] {
        for (uint32_t i = 0; i < 200; ++i) {
          const long result = rm.alloc(1000 * (t + 1) + i, 2 * MiB);
          if (result == 0) ++allocated;
          if (result != 0 && result != -ENOMEM) ++other;
        }
      });
    for (std::thread& thread : threads) thread.join();
    STEP(allocated == 200 && other == 0 && is_equal(slice));
    return 0;
  })));
  EXPECT(findings(GUARD_BEYOND) == 0);
}

SCENARIO(two_devices) {
  for (unsigned device = 0; device < 2; ++device) {
    // Teaches which allocator serves which device, as the self-test does.
    TestSlice probe(90, {{.minor = device, .bytes = {quota}, .fatal = {quota}}});
    EXPECT(guard->set_limits(90, {{.minor = device, .bytes = {quota}, .fatal = {quota}}}, true).has_value());
    EXPECT(exited_well(run_in(probe, [&] { return driver(device).alloc(1, 2 * MiB) == 0 ? 0 : 1; })));
  }
  TestSlice slice(11, {{.minor = 0, .bytes = {256 * MiB}, .fatal = {320 * MiB}},
                       {.minor = 1, .bytes = {512 * MiB}, .fatal = {576 * MiB}}});
  EXPECT(exited_well(run_in(slice, [&] {
    const Driver first = driver(0), second = driver(1);
    STEP(first.alloc(1, 256 * MiB) == 0 && second.alloc(1, 512 * MiB) == 0);
    const auto usage = slice.usage();
    STEP(usage.parts[0].used.count == module_pinned(0) && usage.parts[1].used.count == module_pinned(1));
    STEP(usage.parts[0].used.count == 256 * MiB && usage.parts[1].used.count == 512 * MiB);
    STEP(first.alloc(2, 2 * MiB) == -ENOMEM);
    STEP(second.free(1) == 0 && slice.usage().parts[1].used.count == 0);
    return 0;
  })));
  // The request fits on device 1, so only the count of its pages stops it on device 0.
  const int status = run_in(slice, [&] { return static_cast<int>(driver(0).alloc(1, 400 * MiB)) & 1; });
  EXPECT(WIFSIGNALED(status) && WTERMSIG(status) == 9);
  EXPECT(module_pinned(0) == 0 && module_pinned(1) == 0);
  EXPECT(findings(GUARD_BEYOND) == 1);
}
