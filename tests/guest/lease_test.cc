// Tests leases in real processes: the real preload over the simulated device, under an arbiter that opens and
// closes the gate in a pattern that the test defines.
#include <gtest/gtest.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "tests/guest/agent_fake.h"
#include "tests/guest/spawn.h"

namespace carve::test {
namespace {

constexpr uint64_t us = 1'000, ms = 1'000'000;

uint64_t now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
}

// A simulated A10 that is created for each test.
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

// The work in flight of a slice as an arbiter reads it.
struct Seen {
  uint64_t in_flight = 0;  // Estimated ns.
  uint64_t submitted = 0;
  bool waits = false, busy = false;
};

class Arbiter {
 public:
  explicit Arbiter(const Device& device)
      : agent_({{device.uuid, 16ull << 30, 0}}), environment_(device.environment) {
    control().fence_interval_ns = 200 * us;
    environment_.push_back(std::string("LD_PRELOAD=") + PRELOAD);
    environment_.push_back("CARVE_SOCKET=" + agent_.socket());
    beat();
  }

  Child start(std::vector<std::string> command) { return Child(std::move(command), environment_); }

  void beat() { agent_.pages.heartbeat->monotonic_ns = now_ns(); }
  void set(shm::GateState pass, uint64_t bound) {
    beat();
    control().lease = shm::LeaseWord::of(pass, bound, false, ++number_).value;
    syscall(SYS_futex, &control().lease, FUTEX_WAKE, INT32_MAX, nullptr, nullptr, 0);
  }

  Seen look() {
    Seen s;
    for (unsigned slot = 0; slot < 16; ++slot) {
      const shm::ProcessWork& p = agent_.pages.report->work.process[slot];
      for (const shm::StreamWork& stream : p.stream)
        s.in_flight += stream.fenced.load() - std::min(stream.completed.load(), stream.fenced.load());
      for (const shm::ThreadWork& thread : p.thread) {
        s.in_flight += thread.unfenced;
        s.submitted += thread.submitted;
        s.waits |= thread.waiting_since != 0;
        s.busy |= shm::BusyWord{thread.busy}.is_busy();
      }
    }
    return s;
  }
  shm::ControlDevice& control() { return agent_.pages.control->devices[0]; }
  shm::ProcessWork& work(unsigned slot = 0) { return agent_.pages.report->work.process[slot]; }
  PageFiles& pages() { return agent_.pages; }

  // Polls every 50 us for the given time.
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

// Returns a figure from carve-load's JSON.
uint64_t figure(const std::string& json, const std::string& name) {
  const size_t at = json.find("\"" + name + "\":");
  return at == std::string::npos ? 0 : std::stoull(json.substr(at + name.size() + 3));
}

// Opens the gate for 6 ms of each 20 ms until `done`, and sums the time during which it was open.
struct Wave {
  uint64_t open = 0, begin = now_ns(), rounds = 0, drained = 0;

  template <class Done>
  void run(Arbiter& arbiter, Done done) {
    while (!done() && rounds < 1000) {
      const uint64_t from = now_ns();
      arbiter.set(shm::GateState::lease, bound);
      arbiter.watch(6 * ms, [](const Seen&) {});
      arbiter.set(shm::GateState::closed, 0);
      open += now_ns() - from;
      Seen last;
      arbiter.watch(14 * ms, [&](const Seen& s) { last = s; });
      drained += last.in_flight == 0;
      ++rounds;
    }
  }
  double share() const { return static_cast<double>(open) / static_cast<double>(now_ns() - begin); }

  static constexpr uint64_t bound = 1 * ms;
};

struct Shape {
  const char* name;
  std::vector<std::string> arguments;
  bool overlaps = false;  // Kernels of several streams overlap, so their sum has no meaning.
};

class Leases : public testing::TestWithParam<Shape> {};

// A program gets the time during which its gate is open, and its work in flight ends soon after the gate
// closes.
TEST_P(Leases, limit_a_program_to_the_time_in_which_its_gate_is_open) {
  const Device device;
  Arbiter arbiter(device);
  arbiter.set(shm::GateState::closed, 0);
  std::vector<std::string> command = {CARVE_LOAD, "--seconds", "1"};
  command.insert(command.end(), GetParam().arguments.begin(), GetParam().arguments.end());
  Child child = arbiter.start(command);
  ASSERT_TRUE(soon(arbiter, [&] { return arbiter.look().waits; })) << "the first launch waits at the gate";
  std::atomic<bool> done = false;
  std::string json;
  std::thread reader([&] {
    json = child.line();
    done = true;
  });
  Wave wave;
  wave.run(arbiter, [&] { return done.load(); });
  arbiter.set(shm::GateState::open, 0);
  reader.join();
  ASSERT_NE(figure(json, "elapsed_ns"), 0u) << json;
  const double got =
      static_cast<double>(figure(json, "kernel_ns")) / static_cast<double>(figure(json, "elapsed_ns"));
  // Each window of 6 ms may be followed by work up to the in-flight limit and by one more kernel.
  if (!GetParam().overlaps) {
    EXPECT_LT(got, wave.share() * 1.3 + 0.03) << json;
  }
  EXPECT_GT(got, wave.share() * 0.15) << json;
  EXPECT_GE(wave.drained * 2, wave.rounds) << "nothing is in flight after the gate was closed for 14 ms";
  EXPECT_GT(arbiter.work().thread[0].waited, 100 * ms);
  EXPECT_EQ(arbiter.work().fence_kind, static_cast<uint32_t>(shm::FenceKind::memory));
}

INSTANTIATE_TEST_SUITE_P(
    Programs, Leases,
    testing::Values(Shape{"never_synchronising", {"--kernels", "200us", "--no-sync"}},
                    Shape{"of_short_kernels", {"--kernels", "5us", "--no-sync"}},
                    Shape{"synchronising", {"--kernels", "200us"}},
                    Shape{"of_streams", {"--kernels", "200us", "--no-sync", "--streams", "4"}, true},
                    Shape{"of_graphs", {"--kernels", "20us", "--graphs"}}),
    [](const auto& p) { return p.param.name; });

// Sixteen threads with four streams each, graphs, captures and forks: all of it must end and leave no work
// behind.
TEST(Storm, survives_a_gate_that_opens_and_closes) {
  const Device device;
  Arbiter arbiter(device);
  arbiter.set(shm::GateState::closed, 0);
  Child child = arbiter.start({STORM, "16", "1500", "fork"});
  std::atomic<bool> done = false;
  std::string said;
  std::thread reader([&] {
    while ((said = child.line()) == "begun") {}
    done = true;
  });
  Wave wave;
  wave.run(arbiter, [&] { return done.load(); });
  arbiter.set(shm::GateState::lease, UINT64_MAX);
  reader.join();
  EXPECT_EQ(said.substr(0, 3), "ok ");
  EXPECT_EQ(child.wait(), 0);
  for (const shm::ThreadWork& line : arbiter.work().thread) {
    EXPECT_EQ(line.device == 0 ? line.unfenced.load() : 0, 0u);
    EXPECT_EQ(line.waiting_since, 0u);
  }
}

TEST(Storm, never_waits_under_a_lease_without_an_end) {
  const Device device;
  Arbiter arbiter(device);
  arbiter.set(shm::GateState::lease, UINT64_MAX);
  Child child = arbiter.start({STORM, "4", "500"});
  std::string said = child.line();
  if (said == "begun") said = child.line();
  EXPECT_EQ(said.substr(0, 3), "ok ");
  for (const shm::ThreadWork& line : arbiter.work().thread) EXPECT_EQ(line.waited, 0u);
}

// Whatever a killed process left in its slot, the next process can use it.
TEST(Kill, at_any_launch_leaves_a_slot_that_the_next_process_can_use) {
  const Device device;
  Arbiter arbiter(device);
  arbiter.set(shm::GateState::lease, Wave::bound);
  for (int i = 0; i < 12; ++i) {
    Child child = arbiter.start({STORM, "4", "10000"});
    arbiter.beat();
    ASSERT_EQ(child.line(), "begun") << i;
    arbiter.watch(static_cast<uint64_t>(i) * 3 * ms, [](const Seen&) {});
    if (i % 3 == 2) arbiter.set(shm::GateState::closed, 0);
    child.kill();
    child.wait();
    arbiter.set(shm::GateState::lease, Wave::bound);
  }
  Child last = arbiter.start({STORM, "4", "200"});
  std::string said;
  while ((said = last.line()) == "begun") {}
  EXPECT_EQ(said.substr(0, 3), "ok ");
}

TEST(Agent, leaves_its_slices_to_the_timetable_when_it_stops_responding) {
  const Device device;
  Arbiter arbiter(device);
  arbiter.set(shm::GateState::closed, 0);
  arbiter.pages().heartbeat->monotonic_ns = 1;
  // A window of 5 ms in each 20 ms.
  arbiter.control().fallback_period = 20 * ms;
  arbiter.control().fallback_length = 5 * ms;
  Child child = arbiter.start({CARVE_LOAD, "--kernels", "200us", "--no-sync", "--seconds", "1"});
  const std::string json = child.line();
  ASSERT_NE(figure(json, "elapsed_ns"), 0u) << json;
  const double got =
      static_cast<double>(figure(json, "kernel_ns")) / static_cast<double>(figure(json, "elapsed_ns"));
  EXPECT_LT(got, 0.40);
  EXPECT_GT(got, 0.05);
}

}  // namespace
}  // namespace carve::test
