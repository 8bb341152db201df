// Leases in real processes: the real preload over the simulated device, under an arbiter that opens and
// closes the gate by a pattern of the test's.
#include <gtest/gtest.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>

#include <algorithm>
#include <memory>

#include "tests/tenant/agent.h"
#include "tests/tenant/spawn.h"

namespace carve::test {
namespace {

constexpr uint64_t us = 1'000, ms = 1'000'000;

uint64_t now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
}

// One simulated A10, made for each test anew.
struct Device {
  std::string folder = [] {
    char name[] = "/tmp/carve-lease-XXXXXX";
    if (mkdtemp(name) == nullptr) abort();
    return std::string(name);
  }();
  std::vector<std::string> environment = {"SIMGPU_DIR=" + folder + "/set",
                                          std::string("LD_LIBRARY_PATH=") + SIM_DIRECTORY};
  std::vector<uint8_t> uuid;

  Device() {
    if (Child(std::vector<std::string>{CARVE_SIM, "create", folder + "/set", "a10"}, {}).wait() != 0) abort();
    Child lister({PROGRAM, "uuids"}, environment);
    const std::string hex = lister.line();
    for (size_t i = 0; i + 1 < hex.size(); i += 2)
      uuid.push_back(static_cast<uint8_t>(std::stoul(hex.substr(i, 2), nullptr, 16)));
  }
  ~Device() { Child({"rm", "-rf", folder}, {}).wait(); }
};

// What a tenant has under way, as an arbiter reads it.
struct Seen {
  uint64_t in_flight = 0;  // Estimated ns.
  uint64_t submitted = 0;
  bool waits = false, busy = false;
};

class Arbiter {
 public:
  explicit Arbiter(const Device& device) : agent_({{device.uuid, 16ull << 30, 0}}), environment_(device.environment) {
    control().batch_ns = 200 * us;
    environment_.push_back(std::string("LD_PRELOAD=") + PRELOAD);
    environment_.push_back("CARVE_SOCKET=" + agent_.socket());
    beat();
  }

  Child start(std::vector<std::string> command) { return Child(std::move(command), environment_); }

  void beat() { agent_.pages.heartbeat->monotonic_ns = now_ns(); }
  void set(shm::Pass pass, uint64_t bound) {
    beat();
    control().lease = shm::LeaseWord::of(pass, bound, false, ++number_).value;
    syscall(SYS_futex, &control().lease, FUTEX_WAKE, INT32_MAX, nullptr, nullptr, 0);
  }

  Seen look() {
    Seen s;
    for (unsigned slot = 0; slot < 16; ++slot) {
      const shm::ProcessWork& p = agent_.pages.file->work.process[slot];
      for (const shm::StreamWork& stream : p.stream)
        s.in_flight += stream.marked.load() - std::min(stream.completed.load(), stream.marked.load());
      for (const shm::ThreadWork& thread : p.thread) {
        s.in_flight += thread.unmarked;
        s.submitted += thread.submitted;
        s.waits |= thread.waiting_since != 0;
        s.busy |= shm::BusyWord{thread.busy}.is_busy();
      }
    }
    return s;
  }
  shm::ControlDevice& control() { return agent_.pages.control->devices[0]; }
  shm::ProcessWork& work(unsigned slot = 0) { return agent_.pages.file->work.process[slot]; }
  PageFiles& pages() { return agent_.pages; }

  // Looks every 50 us for so long.
  template <class Look>
  void watch(uint64_t ns, Look each) {
    const uint64_t until = now_ns() + ns;
    while (now_ns() < until) {
      beat();
      each(look());
      const timespec t = {0, 50'000};
      nanosleep(&t, nullptr);
    }
  }

 private:
  Agent agent_;
  std::vector<std::string> environment_;
  uint32_t number_ = 0;
};

template <class Condition>
bool soon(Arbiter& arbiter, Condition condition) {
  for (int i = 0; i < 20'000; ++i) {
    arbiter.beat();
    if (condition()) return true;
    usleep(1000);
  }
  return condition();
}

// A figure out of carve-load's JSON.
uint64_t figure(const std::string& json, const std::string& name) {
  const size_t at = json.find("\"" + name + "\":");
  return at == std::string::npos ? 0 : std::stoull(json.substr(at + name.size() + 3));
}

struct Shape {
  const char* name;
  std::vector<std::string> arguments;
  uint64_t kernel_ns;
};

class Leases : public testing::TestWithParam<Shape> {};

// The share that comes out is the share of the time in which the gate is open, a bound's worth of work late.
TEST_P(Leases, hold_a_program_to_the_time_in_which_its_gate_is_open) {
  const Device device;
  Arbiter arbiter(device);
  arbiter.set(shm::Pass::closed, 0);
  std::vector<std::string> command = {CARVE_LOAD, "--seconds", "1.5"};
  command.insert(command.end(), GetParam().arguments.begin(), GetParam().arguments.end());
  Child child = arbiter.start(command);
  ASSERT_TRUE(soon(arbiter, [&] { return arbiter.look().waits; })) << "the first launch stands at the gate";
  uint64_t open = 0, idle_at_end = 0, rounds = 0;
  const uint64_t begin = now_ns();
  for (; rounds < 70; ++rounds) {
    const uint64_t from = now_ns();
    arbiter.set(shm::Pass::lease, 1 * ms);
    arbiter.watch(6 * ms, [](const Seen&) {});
    arbiter.set(shm::Pass::closed, 0);
    open += now_ns() - from;
    Seen last;
    arbiter.watch(14 * ms, [&](const Seen& s) { last = s; });
    idle_at_end += last.in_flight == 0 || last.waits;
  }
  const double share = static_cast<double>(open) / static_cast<double>(now_ns() - begin);
  arbiter.set(shm::Pass::lease, UINT64_MAX);
  std::string json;
  ASSERT_TRUE(soon(arbiter, [&] { return !(json = child.line()).empty(); }));
  const uint64_t e = figure(json, "elapsed_ns");
  printf("share %.3f got %.3f idle %lu/%lu %s\n", share, static_cast<double>(figure(json, "kernel_ns")) / static_cast<double>(e ? e : 1), idle_at_end, rounds, json.c_str());
  for (unsigned i = 0; i < 4; ++i)
    printf("thread %u: submitted %.3f ms waited %.3f ms longest %lu flags %u\n", i,
           static_cast<double>(arbiter.work().thread[i].submitted) / 1e6,
           static_cast<double>(arbiter.work().thread[i].waited) / 1e6, arbiter.work().thread[i].longest.load(),
           arbiter.work().thread[i].flags.load());
}

INSTANTIATE_TEST_SUITE_P(
    Programs, Leases,
    testing::Values(Shape{"never_synchronising", {"--kernels", "200us", "--no-sync"}, 200 * us},
                    Shape{"short_kernels", {"--kernels", "5us", "--no-sync"}, 5 * us},
                    Shape{"synchronising", {"--kernels", "200us"}, 200 * us},
                    Shape{"streams", {"--kernels", "200us", "--no-sync", "--streams", "4"}, 200 * us},
                    Shape{"graphs", {"--kernels", "20us", "--graphs"}, 200 * us}),
    [](const auto& p) { return p.param.name; });

}  // namespace
}  // namespace carve::test
