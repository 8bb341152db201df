// Tests the real preload in real processes, over the stand-in and the simulated driver, under the minimal
// agent.
#include <dirent.h>
#include <gtest/gtest.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>

#include "tests/guest/agent_fake.h"
#include "tests/guest/spawn.h"
#include "wire/shm/budget.h"

namespace carve::test {
namespace {

constexpr uint64_t MiB = 1 << 20;
const bool long_run = [] {
  const char* wish = getenv("CARVE_LONG");
  return wish != nullptr && *wish != 0;
}();

// A driver that a program may find: the folder of libcuda.so.1, the devices, and the environment.
struct Driver {
  std::string libraries;
  std::vector<std::vector<uint8_t>> uuids;
  std::vector<std::string> environment;
};

Driver standin() {
  return {STANDIN_DIRECTORY, {std::vector<uint8_t>(16, 1), std::vector<uint8_t>(16, 2)}, {}};
}

std::vector<std::string> plain(const Driver& d) {
  auto e = d.environment;
  e.push_back("LD_LIBRARY_PATH=" + d.libraries);
  return e;
}

std::vector<std::string> hooked(const Driver& d, const std::string& socket) {
  auto e = plain(d);
  e.push_back(std::string("LD_PRELOAD=") + PRELOAD);
  e.push_back("CARVE_SOCKET=" + socket);
  return e;
}

// A sanitized simulated driver cannot be loaded into a plain program, so those tests run in the other
// presets.
#ifdef SANITIZED
constexpr bool no_simulation = true;
#else
constexpr bool no_simulation = false;
#endif
constexpr const char* because =
    "the simulated driver is sanitized here and cannot be loaded into a plain program";

// Returns two simulated A10 with a driver's names and versions ("470", or "" for all names), created once for
// all tests.
const Driver& simulated(const std::string& driver) {
  static std::map<std::string, Driver> made;
  static char folder[] = "/tmp/carve-simset-XXXXXX";
  if (const auto known = made.find(driver); known != made.end()) return known->second;
  if (made.empty()) {
    if (mkdtemp(folder) == nullptr) abort();
    atexit([] { Child({"rm", "-rf", folder}, {}).wait(); });
  }
  const std::string set = std::string(folder) + "/set" + driver;
  Child tool({CARVE_SIM, "create", set, driver.empty() ? "a10x2" : "a10x2@" + driver}, {});
  if (tool.wait() != 0) abort();
  Driver d = {std::string(SIM_DIRECTORY) + "/" + driver, {}, {"SIMGPU_DIR=" + set}};
  Child lister({PROGRAM, "uuids"}, plain(d));
  for (std::string hex = lister.line(); hex.size() == 32; hex = lister.line()) {
    std::vector<uint8_t> uuid;
    for (size_t i = 0; i < 32; i += 2)
      uuid.push_back(static_cast<uint8_t>(std::stoul(hex.substr(i, 2), nullptr, 16)));
    d.uuids.push_back(uuid);
  }
  if (d.uuids.size() != 2) abort();
  return made[driver] = std::move(d);
}

// Runs with the simulated driver that has all names, and with the oldest and the newest of those whose names
// tests/nvidia compares with NVIDIA's.
class Simulated : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (no_simulation) GTEST_SKIP() << because;
  }
  const Driver& driver() { return simulated(GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(Drivers, Simulated, testing::Values("", "470", "550"), [](const auto& test) {
  return *test.param == 0 ? std::string("all_names") : "driver_" + std::string(test.param);
});

uint64_t used(const Agent& agent, unsigned device = 0) {
  return shm::in_use(agent.pages.report->charges, device).bytes;
}

template <class Condition>
bool soon(Condition condition) {
  for (int i = 0; i < 5000; ++i) {
    if (condition()) return true;
    usleep(1000);
  }
  return false;
}

class UsageRecord {
 public:
  UsageRecord() {
    fd_ = mkstemp(path_);
    if (fd_ < 0 || ftruncate(fd_, 4096) != 0) abort();
    words_ = static_cast<uint64_t*>(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0));
  }
  UsageRecord(const UsageRecord&) = delete;
  UsageRecord& operator=(const UsageRecord&) = delete;
  ~UsageRecord() {
    munmap(words_, 4096);
    close(fd_);
    unlink(path_);
  }
  std::string variable() const { return std::string("STANDIN_USAGE=") + path_; }
  uint64_t now() const { return __atomic_load_n(&words_[0], __ATOMIC_SEQ_CST); }
  uint64_t most() const { return word(1); }
  uint64_t word(size_t i) const { return __atomic_load_n(&words_[i], __ATOMIC_SEQ_CST); }
  std::string path() const { return path_; }

 private:
  char path_[32] = "/tmp/carve-usage-XXXXXX";
  int fd_;
  uint64_t* words_;
};

// The stand-in counts exactly, so this test proves that no byte exceeds the quota while the contexts and
// allocations of sixteen processes race for the last blocks.
TEST(Quota, is_never_exceeded_by_sixteen_racing_processes) {
  constexpr uint64_t context = 3 * MiB, quota = 16 * context + 101 * MiB + 512;
  constexpr int processes = 16;
  UsageRecord usage;
  Driver driver = standin();
  driver.environment.push_back(usage.variable());
  driver.environment.push_back("STANDIN_CONTEXT=" + std::to_string(context));
  Agent agent({{driver.uuids[0], quota, context}});
  std::vector<std::unique_ptr<Child>> children;
  for (int i = 0; i < processes; ++i) {
    // Blocks of different sizes, both small and large.
    const std::string piece = std::to_string(i % 3 == 0 ? 700'000 : i % 3 == 1 ? 2 * MiB : 5 * MiB - 3);
    children.push_back(std::make_unique<Child>(std::vector<std::string>{PROGRAM, "race", "200", piece},
                                               hooked(driver, agent.socket())));
  }
  long pieces = 0;
  for (auto& c : children) {
    pieces += atol(c->line().c_str());
    EXPECT_EQ(c->wait(), 0);
  }
  EXPECT_GT(pieces, 200);
  EXPECT_LE(usage.most(), quota);
  EXPECT_GT(usage.most(), quota - 512 * 1024) << "the processes never came near the limit";
  EXPECT_EQ(usage.now(), 0u);
  ASSERT_TRUE(soon([&] { return agent.living() == 0; }));
  EXPECT_EQ(used(agent), 0u);
  // No byte of the quota remains unusable.
  Child after({PROGRAM, "fill", "512"}, hooked(driver, agent.socket()));
  EXPECT_EQ(after.line(), std::to_string(quota - context));
}

TEST_P(Simulated, quota_is_enforced) {
  constexpr uint64_t context = 256 * MiB, quota = 4 * context + 600 * MiB;
  Agent agent({{driver().uuids[0], quota, context}});
  std::vector<std::unique_ptr<Child>> children;
  for (int i = 0; i < 4; ++i)
    children.push_back(std::make_unique<Child>(
        std::vector<std::string>{PROGRAM, "race", "20", std::to_string((i + 1) * 10 * MiB)},
        hooked(driver(), agent.socket())));
  for (auto& c : children) EXPECT_EQ(c->wait(), 0);
  ASSERT_TRUE(soon([&] { return agent.living() == 0; }));
  EXPECT_EQ(used(agent), 0u);
  Child after({PROGRAM, "fill", "2097152"}, hooked(driver(), agent.socket()));
  EXPECT_EQ(after.line(), std::to_string((quota - context) / (2 * MiB) * 2 * MiB));
  EXPECT_LE(used(agent), quota);
}

TEST_P(Simulated, quota_is_shown_to_a_program_as_its_device) {
  Agent agent({{driver().uuids[0], 2048 * MiB, 256 * MiB}});
  Child child({PROGRAM, "info"}, hooked(driver(), agent.socket()));
  EXPECT_EQ(child.line(),
            std::to_string(1792 * MiB) + " " + std::to_string(2048 * MiB) + " " + std::to_string(2048 * MiB));
  EXPECT_EQ(child.wait(), 0);
}

TEST_P(Simulated, monitor_in_a_slice_sees_only_the_slice_and_itself) {
  Agent agent({{driver().uuids[1], 2048 * MiB, 256 * MiB}});
  Child neighbour({PROGRAM, "hold", "104857600"},
                  plain(driver()));  // On the other device, outside of slices.
  EXPECT_EQ(neighbour.line(), "held");
  auto environment = hooked(driver(), agent.socket());
  environment.push_back("CUDA_VISIBLE_DEVICES=0");
  Child child({PROGRAM, "monitor"}, environment);
  EXPECT_EQ(child.line(), "1 " + std::to_string(2048 * MiB) + " " + std::to_string(266 * MiB) + " " +
                              std::to_string(1782 * MiB) + " 1 1");
  EXPECT_EQ(child.wait(), 0);
}

std::vector<std::string> ffmpeg(const std::string& size) {
  return {"ffmpeg",
          "-hide_banner",
          "-loglevel",
          "error",
          "-init_hw_device",
          "cuda=cu:0",
          "-filter_hw_device",
          "cu",
          "-f",
          "lavfi",
          "-i",
          "testsrc=size=" + size + ":rate=10:duration=0.2",
          "-vf",
          "format=nv12,hwupload_cuda,scale_cuda=160:90,hwdownload,format=nv12",
          "-f",
          "null",
          "-"};
}

// Debian's ffmpeg looks up every entry with dlsym, and cuCtxCreate creates two contexts, one for the device
// on the command line and one for the upload filter.
TEST_P(Simulated, ffmpeg_with_cuda_filters_stays_within_a_quota) {
  if (access("/usr/bin/ffmpeg", X_OK) != 0) GTEST_SKIP() << "ffmpeg is not installed: apt-get install ffmpeg";
  Agent agent({{driver().uuids[0], 520 * MiB, 256 * MiB}});
  Child fits(ffmpeg("320x180"), hooked(driver(), agent.socket()));
  EXPECT_EQ(fits.wait(), 0);
  EXPECT_GE(agent.attaches(), 1);
  ASSERT_TRUE(soon([&] { return agent.living() == 0; }));
  EXPECT_EQ(used(agent), 0u);
  Child too_large(ffmpeg("4096x4096"), hooked(driver(), agent.socket()));
  EXPECT_NE(too_large.wait(), 0);
  EXPECT_EQ(Child(ffmpeg("4096x4096"), plain(driver())).wait(), 0) << "without a quota it runs";
}

TEST_P(Simulated, quota_of_a_slice_on_the_second_device_is_shown_as_device_0) {
  Agent agent({{driver().uuids[1], 2048 * MiB, 256 * MiB}});
  Child child({PROGRAM, "info"}, hooked(driver(), agent.socket()));  // Without CUDA_VISIBLE_DEVICES.
  EXPECT_EQ(child.line(),
            std::to_string(1792 * MiB) + " " + std::to_string(2048 * MiB) + " " + std::to_string(2048 * MiB));
  EXPECT_EQ(child.wait(), 0);
}

uint64_t spilled(const Agent& agent) { return shm::in_use(agent.pages.report->spill, 0).bytes; }

// Sixteen processes of two slices on one device, each slice with spill, are killed at random while they
// charge, release, spill and export. A kill must never make a surviving process wait: no call sleeps, or
// spins for the 5 ms that it may take until the dead process's bytes are released.
TEST(Quota, is_exact_again_after_a_storm_of_kills) {
  const Driver driver = standin();
  constexpr uint64_t context = 2 * MiB, quota = 8 * context + 40 * MiB, spill = 20 * MiB;
  const int rounds = long_run ? 1000 : 150;
  UsageRecord patience;
  std::vector<std::unique_ptr<Agent>> slices;
  for (int i = 0; i < 2; ++i)
    slices.push_back(std::make_unique<Agent>(std::vector<Grant>{{driver.uuids[0], quota, context, spill}}));
  std::mt19937 random(2024);
  std::vector<std::unique_ptr<Child>> children(16);
  const auto start = [&](size_t i) {
    auto environment = hooked(driver, slices[i % 2]->socket());
    environment.push_back("CHURN_WITNESS=" + patience.path());
    return std::make_unique<Child>(std::vector<std::string>{PROGRAM, "churn", std::to_string(random())},
                                   environment);
  };
  for (size_t i = 0; i < children.size(); ++i) children[i] = start(i);
  for (int round = 0; round < rounds; ++round) {
    usleep(random() % 8000);
    for (const auto& slice : slices) {
      EXPECT_LE(used(*slice), quota);
      EXPECT_LE(spilled(*slice), spill);
    }
    const size_t victim = random() % children.size();
    children[victim]->kill();
    EXPECT_EQ(children[victim]->wait(), 128 + SIGKILL) << "the process ended before it was killed";
    children[victim] = start(victim);
  }
  for (auto& c : children) {
    c->kill();
    c->wait();
  }
  EXPECT_GT(patience.word(0), 1000u) << "calls";
  // A shared machine may stall sometimes, but a lock left behind would stop seven siblings at every other
  // kill. In a build with injected delays, the holder of a lock sleeps and its siblings wait.
#ifndef DELAYED
  EXPECT_LE(patience.word(1), rounds / 10u) << "calls that slept";
  EXPECT_LE(patience.word(2), rounds / 10u) << "calls that spun for 5 ms";
#endif
  for (const auto& slice : slices) {
    ASSERT_TRUE(soon([&] { return slice->living() == 0; }));
    EXPECT_EQ(used(*slice), 0u);
    EXPECT_EQ(spilled(*slice), 0u);
    Child after({PROGRAM, "fill", "2097152"}, hooked(driver, slice->socket()));
    EXPECT_EQ(after.line(), std::to_string(quota + spill - context)) << "and all of it is usable";
  }
}

// Returns the state in /proc/PID/stat: 'T' if the process stopped itself.
char state_of(pid_t pid) {
  char state = 0;
  FILE* f = fopen(("/proc/" + std::to_string(pid) + "/stat").c_str(), "r");
  if (f == nullptr) return 0;
  if (fscanf(f, "%*d %*s %c", &state) != 1) state = 0;
  fclose(f);
  return state;
}

// Lets a traced process execute one instruction. Returns false if it stopped for another reason.
bool one_instruction(pid_t pid) {
  int status = 0;
  return ptrace(PTRACE_SINGLESTEP, pid, nullptr, nullptr) == 0 && waitpid(pid, &status, __WALL) == pid &&
         WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP;
}

// Tests every instruction of the library on one thread's path: a tracer lets the program execute n
// instructions of a few calls that charge, export, spill and release memory, and kills it there.
TEST(Kill, at_any_instruction_of_a_call_leaves_the_budget_exact) {
  const Driver driver = standin();
  constexpr uint64_t context = MiB, quota = 40 * MiB;
  Agent agent({{driver.uuids[0], quota, context, 60 * MiB}});
  Child sibling({PROGRAM, "hold", "2097152"}, hooked(driver, agent.socket()));
  ASSERT_EQ(sibling.line(), "held");
  const uint64_t held = used(agent);
  EXPECT_EQ(held, context + 2 * MiB);
  std::mt19937 random(7);
  int kills = 0;
  bool ended = false;
  // Tests all instructions in the long form, and every 97th on average in the short form.
  for (int n = 0; !ended; n += long_run ? 1 : 1 + static_cast<int>(random() % 193)) {
    Child child({PROGRAM, "walk"}, hooked(driver, agent.socket()));
    ASSERT_EQ(child.line(), "begin");
    ASSERT_TRUE(soon([&] { return state_of(child.pid()) == 'T'; }));
    if (ptrace(PTRACE_SEIZE, child.pid(), nullptr, nullptr) != 0)
      GTEST_SKIP() << "this machine does not allow a process to trace its child: " << strerror(errno);
    int status = 0;
    ASSERT_EQ(waitpid(child.pid(), &status, __WALL), child.pid());
    for (int step = 0; step < n && !ended; ++step) ended = !one_instruction(child.pid());
    child.kill();
    EXPECT_EQ(child.wait(), 128 + SIGKILL);
    kills += !ended;
    ASSERT_TRUE(soon([&] { return agent.living() == 1; }));
    ASSERT_EQ(used(agent), held) << "killed after " << n << " instructions";
    ASSERT_EQ(spilled(agent), 0u) << "killed after " << n << " instructions";
  }
  EXPECT_GT(kills, 10);
}

// A process of the slice overwrites the pages that all its processes share. The results are wrong figures and
// rejections, but no process may crash, hang or get an error other than "out of memory".
TEST(Report, full_of_random_bytes_harms_only_its_slice_and_crashes_no_process) {
  const Driver driver = standin();
  Agent agent({{driver.uuids[0], 64 * MiB, MiB}});
  std::vector<std::unique_ptr<Child>> children;
  for (int i = 0; i < 3; ++i) {
    children.push_back(std::make_unique<Child>(std::vector<std::string>{PROGRAM, "churn", std::to_string(i)},
                                               hooked(driver, agent.socket())));
  }
  ASSERT_TRUE(soon([&] { return agent.living() == 3; }));
  std::mt19937_64 random(5);
  auto* words = reinterpret_cast<uint64_t*>(agent.pages.report);
  // After the header, which a process checks only when it attaches.
  constexpr size_t busy = (4096 + 8 * sizeof(shm::ReportProcess)) / 8;  // The budgets and the first slots.
  for (int round = 0; round < (long_run ? 20'000 : 150); ++round) {
    for (int i = 0; i < 500; ++i)
      __atomic_store_n(&words[8 + random() % busy], random() % 3 == 0 ? 0 : random(), __ATOMIC_RELAXED);
    usleep(1000);
  }
  for (auto& c : children) {
    EXPECT_EQ(kill(c->pid(), 0), 0);
    c->kill();
    EXPECT_EQ(c->wait(), 128 + SIGKILL) << "the process ended before it was killed";
  }
  EXPECT_TRUE(soon([&] { return agent.living() == 0; })) << "the agent got stuck on an overwritten page";
}

TEST(Fork, gives_the_child_its_own_slot_and_does_not_change_the_parents_charges) {
  const Driver driver = standin();
  constexpr uint64_t context = MiB;
  Agent agent({{driver.uuids[0], 64 * MiB, context}});
  Child child({PROGRAM, "forks"}, hooked(driver, agent.socket()));
  EXPECT_EQ(child.line(), "child");
  EXPECT_EQ(agent.living(), 2);
  EXPECT_EQ(used(agent), context + 6 * MiB);
  child.nudge();
  EXPECT_EQ(child.line(), "parent");
  ASSERT_TRUE(soon([&] { return agent.living() == 1; }));
  EXPECT_EQ(used(agent), context + 4 * MiB);
  child.nudge();
  EXPECT_EQ(child.wait(), 0);
  ASSERT_TRUE(soon([&] { return agent.living() == 0; }));
  EXPECT_EQ(used(agent), 0u);
}

TEST_P(Simulated, fork_does_not_change_the_parent) {
  constexpr uint64_t context = 256 * MiB;
  Agent agent({{driver().uuids[0], 1024 * MiB, context}});
  Child child({PROGRAM, "forks"}, hooked(driver(), agent.socket()));
  EXPECT_EQ(child.line(), "child");
  child.nudge();
  EXPECT_EQ(child.line(), "parent");
  EXPECT_EQ(used(agent), context + 4 * MiB);
  child.nudge();
  EXPECT_EQ(child.wait(), 0);
}

TEST(Fork, during_calls_of_other_threads_leaves_no_lock_in_the_child) {
  const Driver driver = standin();
  Agent agent({{driver.uuids[0], 64 * MiB, MiB}});
  Child child({PROGRAM, "fork-storm", long_run ? "3000" : "200"}, hooked(driver, agent.socket()));
  EXPECT_EQ(child.line(), "");
  EXPECT_EQ(child.wait(), 0);
  ASSERT_TRUE(soon([&] { return agent.living() == 0; }));
  EXPECT_EQ(used(agent), 0u);
}

TEST(Exec, starts_again_with_no_charges) {
  const Driver driver = standin();
  constexpr uint64_t context = MiB;
  Agent agent({{driver.uuids[0], 64 * MiB, context}});
  Child child({PROGRAM, "execs"}, hooked(driver, agent.socket()));
  EXPECT_EQ(child.line(), "held");
  EXPECT_EQ(agent.attaches(), 2);
  EXPECT_EQ(agent.living(), 1);
  EXPECT_EQ(used(agent), context + 2 * MiB);
}

TEST(Attach, happens_once_even_if_many_threads_race) {
  const Driver driver = standin();
  Agent agent({{driver.uuids[0], 64 * MiB, 0}});
  Child child({PROGRAM, "threads"}, hooked(driver, agent.socket()));
  EXPECT_EQ(child.line(), "ready");
  EXPECT_EQ(agent.attaches(), 1);
}

TEST(Attach, leaves_no_descriptor_open) {
  const Driver driver = standin();
  Agent agent({{driver.uuids[0], 64 * MiB, 0}});
  Child child({PROGRAM, "descriptors"}, hooked(driver, agent.socket()));
  EXPECT_EQ(child.line(), "");
  EXPECT_EQ(child.wait(), 0);
}

TEST(Attach, does_not_affect_a_process_that_is_in_no_slice) {
  const Driver driver = standin();
  Agent agent({{driver.uuids[0], 1 * MiB, 0}}, [](shm::AttachReply& r) {
    r.status = shm::AttachStatus::not_in_slice;
    return true;
  });
  Child child({PROGRAM, "info"}, hooked(driver, agent.socket()));
  const std::string native = std::to_string(40ull << 30);
  EXPECT_EQ(child.line(), native + " " + native + " " + native);
}

TEST(Attach, returns_system_not_ready_if_refused) {
  const Driver driver = standin();
  for (const auto status : {shm::AttachStatus::wrong_layout, shm::AttachStatus::no_slot}) {
    Agent agent({{driver.uuids[0], 1 * MiB, 0}}, [=](shm::AttachReply& r) {
      r.status = status;
      return true;
    });
    Child child({PROGRAM, "init"}, hooked(driver, agent.socket()));
    EXPECT_EQ(child.line(), "error 802");
    EXPECT_EQ(child.wait(), 1);
  }
}

TEST(Attach, waits_for_an_agent_that_is_starting) {
  const Driver driver = standin();
  std::atomic<int> asked{0};
  Agent agent({{driver.uuids[0], 1 * MiB, 0}}, [&](shm::AttachReply& r) {
    if (++asked < 4) r.status = shm::AttachStatus::try_again;
    return asked != 4;  // One connection is just closed.
  });
  Child child({PROGRAM, "init"}, hooked(driver, agent.socket()));
  EXPECT_EQ(child.wait(), 0);
  EXPECT_EQ(asked, 5);
}

// Applies to the preload if a socket is named, and always to the shim.
TEST(Attach, gives_up_after_thirty_seconds_and_fails) {
  const Driver driver = standin();
  const time_t before = time(nullptr);
  Child preload({PROGRAM, "init"}, hooked(driver, "/tmp/carve-no-agent"));
  Child shim({PROGRAM, "init"}, plain({SHIM_DIRECTORY, {}, {}}));
  EXPECT_EQ(preload.line(), "error 802");
  EXPECT_EQ(shim.line(), "error 802");
  EXPECT_GE(time(nullptr) - before, 29);
}

TEST(Attach, does_not_affect_a_program_if_there_is_no_sign_of_an_agent) {
  Driver driver = standin();
  driver.environment.push_back(std::string("LD_PRELOAD=") + PRELOAD);
  if (access("/run/carve/carved.sock.attach", F_OK) == 0) GTEST_SKIP() << "this machine has an agent";
  Child child({PROGRAM, "info"}, plain(driver));
  EXPECT_NE(child.line(), "");
  EXPECT_EQ(child.wait(), 0);
}

TEST(Lookups, are_the_same_with_and_without_the_preload_except_for_hooks) {
  const Driver driver = standin();
  Agent agent({{driver.uuids[0], 64 * MiB, 0}});
  for (const auto& environment : {plain(driver), hooked(driver, agent.socket())}) {
    Child child({PROGRAM, "lookups", PROBE}, environment);
    EXPECT_EQ(child.line(), "");
    EXPECT_EQ(child.wait(), 0);
  }
}

TEST(Shim, is_indistinguishable_from_the_driver_for_a_program) {
  const Driver driver = standin();
  Agent agent({{driver.uuids[0], 64 * MiB, 8 * MiB}}, {}, SHIM_SOCKET);
  // The environment is ignored: neither another socket nor a higher limit has an effect.
  const auto environment =
      plain({SHIM_DIRECTORY, {}, {"CARVE_SOCKET=/tmp/elsewhere", "CUDA_DEVICE_MEMORY_LIMIT=1g"}});
  Child info({PROGRAM, "info"}, environment);
  EXPECT_EQ(info.line(),
            std::to_string(56 * MiB) + " " + std::to_string(64 * MiB) + " " + std::to_string(64 * MiB));
  EXPECT_EQ(info.wait(), 0);
  Child fill({PROGRAM, "fill", "512"}, environment);
  EXPECT_EQ(fill.line(), std::to_string(56 * MiB));
  Child lookups({PROGRAM, "lookups", PROBE}, environment);
  EXPECT_EQ(lookups.line(), "");
  EXPECT_EQ(lookups.wait(), 0);
}

TEST(Hint, in_the_environment_lowers_what_the_program_sees) {
  const Driver driver = standin();
  Agent agent({{driver.uuids[0], 64 * MiB, 8 * MiB}});
  auto environment = hooked(driver, agent.socket());
  environment.push_back("CUDA_DEVICE_MEMORY_LIMIT_0=32m");
  Child info({PROGRAM, "info"}, environment);
  EXPECT_EQ(info.line(),
            std::to_string(24 * MiB) + " " + std::to_string(32 * MiB) + " " + std::to_string(32 * MiB));
}

TEST(Bystanders, run_as_if_the_library_were_not_there) {
  const Driver driver = standin();
  const auto environment = hooked(driver, "/tmp/carve-no-agent");
  Child bash({"bash", "-c", "echo $((6 * 7)); exit 3"}, environment);
  EXPECT_EQ(bash.line(), "42");
  EXPECT_EQ(bash.wait(), 3);
  Child ls({"ls", "/dev/null"}, environment);
  EXPECT_EQ(ls.line(), "/dev/null");
  Child python({"/usr/bin/python3", "-c",
                "import ctypes, threading, subprocess; t = threading.Thread(target=print, "
                "args=(ctypes.CDLL(None).getpid() > 0,)); "
                "t.start(); t.join(); print(subprocess.run(['true']).returncode)"},
               environment);
  EXPECT_EQ(python.line(), "True");
  EXPECT_EQ(python.line(), "0");
}

}  // namespace
}  // namespace carve::test
