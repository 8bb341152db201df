// The frame of the guard's scenarios, which run as root in a virtual machine with the stand-in module. The
// main process plays the agent: it sets limits, reads findings and kills cgroups. Attackers are children that
// enter a slice's cgroup first.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "driver_requests.h"
#include "node/guard/kernel_guard.h"

namespace guard_test {

using carve::node::GuardLimit;
using carve::node::GuardUsage;
using carve::node::KernelGuard;

inline constexpr uint64_t MiB = 1 << 20;
inline constexpr const char* control_node = "/dev/nvidiactl";
inline constexpr const char* device_nodes[] = {"/dev/nvidia0", "/dev/nvidia1"};
inline constexpr const char* guard_directory = "/sys/fs/bpf/carve-guard";

// Fails the current scenario with a message if the condition does not hold.
#define EXPECT(condition) \
  if (!(condition)) guard_test::fail(__FILE__, __LINE__, #condition)
void fail(const char* file, int line, const std::string& what);

// Pinned bytes of a device, and the number of controls, as the module counts them.
uint64_t module_pinned(unsigned device);
uint64_t module_controls();

// The guard that the scenarios use. It is replaced when it is loaded again.
extern std::unique_ptr<KernelGuard> guard;
extern carve::node::GuardHook hook;

// A slice with a cgroup, for the duration of a scenario.
class TestSlice {
 public:
  TestSlice(uint64_t id, const std::vector<GuardLimit>& limits);
  ~TestSlice();
  TestSlice(const TestSlice&) = delete;
  TestSlice& operator=(const TestSlice&) = delete;

  uint64_t id;
  std::string cgroup;
  GuardUsage usage() const;
  void kill() const;  // All processes of its cgroup.
};

// Runs `act` in a child in the cgroup, and plays the agent until the child has ended. Returns waitpid's status.
int run_in(const TestSlice& slice, const std::function<int()>& act);
// Starts the child only.
pid_t start_in(const TestSlice& slice, const std::function<int()>& act);
// Plays the agent until the child has ended.
int follow(const TestSlice& slice, pid_t child);
int wait_only(pid_t child);

// Number of findings of one kind since the scenario began.
unsigned findings(guard_finding_kind kind);

struct Scenario {
  const char* name;
  void (*run)();
};
#define SCENARIO(name)                                                            \
  static void run_##name();                                                       \
  static const bool added_##name = guard_test::add_scenario({#name, run_##name}); \
  static void run_##name()
bool add_scenario(const Scenario&);

}  // namespace guard_test
