// Scenarios: attacks on the guard, and what it must leave alone.
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <thread>

#include "guard_scenarios.h"
#include "node/guard/ioctl_numbers.h"

using namespace guard_test;

namespace {

constexpr uint64_t quota = 1024 * MiB, tolerance = 64 * MiB;
constexpr uint64_t beyond = quota + 2 * tolerance;

std::vector<GuardLimit> one_device() {
  return {{.minor = 0, .bytes = {quota}, .fatal = {quota + tolerance}}};
}
Driver driver(unsigned device = 0) { return Driver::open(control_node, device_nodes[device], device); }

#define STEP(condition) \
  if (!(condition)) return __COUNTER__ + 1

bool exited_well(int status) {
  if (WIFEXITED(status) && WEXITSTATUS(status) != 0) fprintf(stderr, "# step %d\n", WEXITSTATUS(status));
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}
bool was_killed(int status) { return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL; }

// Waits until the module has released everything on the device; the kernel frees a killed process's memory
// after its end is reported.
bool is_released(unsigned device = 0) {
  for (int i = 0; i < 500 && module_pinned(device) != 0; ++i) usleep(10'000);
  return module_pinned(device) == 0;
}

// Sets the time between the check and the driver's copy of the size, in microseconds.
void set_copy_delay(const char* microseconds) {
  const int file = open("/sys/module/nvidia/parameters/copy_delay_us", O_WRONLY);
  EXPECT(write(file, microseconds, strlen(microseconds)) > 0);
  close(file);
}

long nanoseconds(const timespec& from, const timespec& to) {
  return (to.tv_sec - from.tv_sec) * 1'000'000'000L + (to.tv_nsec - from.tv_nsec);
}
// Returns the median duration of an act, in nanoseconds.
long median_ns(int rounds, int repeats, const std::function<void()>& act) {
  std::vector<long> all;
  for (int i = 0; i < rounds; ++i) {
    timespec from{}, to{};
    clock_gettime(CLOCK_MONOTONIC, &from);
    for (int k = 0; k < repeats; ++k) act();
    clock_gettime(CLOCK_MONOTONIC, &to);
    all.push_back(nanoseconds(from, to) / repeats);
  }
  std::sort(all.begin(), all.end());
  return all[all.size() / 2];
}

}  // namespace

SCENARIO(unread_parameters_are_counted_and_killed) {
  TestSlice slice(21, one_device());
  EXPECT(was_killed(run_in(slice, [&] {
    const Driver rm = driver();
    (void)rm.alloc_unread(1, beyond);
    pause();
    return 0;
  })));
  EXPECT(is_released());
  EXPECT(findings(GUARD_BEYOND) == 1);
  EXPECT(slice.usage().beyond == 0u && slice.usage().parts[0].used.count == 0);
}

// Requests memory while a thread changes the size between the check and the driver's copy. Returns 9 if the
// process held more than its limit and lived on; otherwise how many requests were refused, at most 8.
static int race() {
  const Driver rm = driver();
  alignas(64) volatile uint64_t nested[16] = {};
  std::atomic<bool> begun{false}, stop{false};
  std::thread flipper([&] {
    while (!stop) {
      nested[8] = 2 * MiB;
      begun = true;
      nested[8] = beyond;
    }
  });
  while (!begun) usleep(100);
  int refused = 0, result = 0;
  for (uint32_t i = 1; i <= 25 && result == 0; ++i) {
    const long status = rm.alloc_at(i, const_cast<uint64_t*>(nested));
    refused += status == -ENOMEM;
    if (status != 0) continue;
    if (module_pinned(0) > quota + tolerance) result = 9;
    rm.free(i);
  }
  stop = true;
  flipper.join();
  return result != 0 ? result : std::min(refused, 8);
}

SCENARIO(size_changes_after_the_check) {
  int killed = 0, refused = 0;
  set_copy_delay("20");
  for (unsigned attempt = 0; attempt < 60; ++attempt) {
    TestSlice slice(100 + attempt, one_device());
    const int status = run_in(slice, race);
    EXPECT(is_released());
    EXPECT(was_killed(status) || (WIFEXITED(status) && WEXITSTATUS(status) != 9));
    killed += was_killed(status);
    refused += WIFEXITED(status) && WEXITSTATUS(status) != 0;
    EXPECT(slice.usage().parts[0].used.count == 0);
    EXPECT(was_killed(status) == slice.usage().beyond.has_value());
  }
  set_copy_delay("0");
  EXPECT(killed > 0);
  printf("# races: of 60 attackers %d won a race and were killed, %d were only refused\n", killed, refused);
}

SCENARIO(sibling_with_the_descriptor_is_killed_too) {
  TestSlice slice(22, one_device());
  int ends[2];
  EXPECT(pipe(ends) == 0);
  const int status = run_in(slice, [&] {
    const Driver rm = driver();
    const pid_t sibling = fork();
    if (sibling == 0) {
      setsid();
      for (;;) pause();  // Holds the driver's file.
    }
    STEP(write(ends[1], &sibling, sizeof sibling) == sizeof sibling);
    (void)rm.alloc_unread(1, beyond);
    pause();
    return 0;
  });
  pid_t sibling = 0;
  EXPECT(read(ends[0], &sibling, sizeof sibling) == sizeof sibling);
  close(ends[0]);
  close(ends[1]);
  EXPECT(was_killed(status));
  EXPECT(is_released());
}

SCENARIO(other_nodes) {
  TestSlice slice(23, one_device());
  mknod("/tmp/alias-control", S_IFCHR | 0666, makedev(195, 255));
  mknod("/tmp/alias-0", S_IFCHR | 0666, makedev(195, 0));
  mknod("/tmp/alias-1", S_IFCHR | 0666, makedev(195, 1));
  // A descriptor of another device, opened outside the slice.
  const int foreign = open("/dev/nvidia1", O_RDWR);
  EXPECT(foreign >= 0);
  const Driver outside = driver(1);
  EXPECT(outside.is_ready());
  EXPECT(exited_well(run_in(slice, [&] {
    const Driver rm = Driver::open("/tmp/alias-control", "/tmp/alias-0", 0);
    STEP(rm.is_ready());
    STEP(rm.alloc(1, beyond) == -ENOMEM);
    STEP(open("/tmp/alias-1", O_RDWR) == -1 && errno == EPERM);
    STEP(open("/dev/nvidia1", O_RDWR) == -1 && errno == EPERM);
    const int control = rm.control;
    STEP(request(foreign, 201, const_cast<int*>(&control), 4, Entry::native) == -EPERM);
    STEP(open("/dev/null", O_RDWR) >= 0 && open("/dev/zero", O_RDONLY) >= 0);
    return 0;
  })));
  close(foreign);
  close(outside.control);
  close(outside.node);
  EXPECT(slice.usage().denied == 1);
}

SCENARIO(never_allowed_requests) {
  TestSlice slice(24, one_device());
  const uint64_t controls_before = module_controls();
  EXPECT(exited_well(run_in(slice, [&] {
    const Driver rm = driver();
    STEP(rm.alloc_class(1, device_handle, 0xc2) == -EPERM);
    STEP(rm.alloc_class(1, device_handle, 0xa06c, 1) == -EPERM);
    for (const uint32_t command :
         {GUARD_SET_TIMESLICE, GUARD_PREEMPT, GUARD_SET_INTERLEAVE_LEVEL, GUARD_DISABLE_CHANNELS})
      for (const Entry entry : {Entry::native, Entry::compat, Entry::transfer})
        STEP(rm.control_call(command, entry) == -EPERM);
    STEP(rm.control_call(0x20800110) == 0);
    return 0;
  })));
  EXPECT(module_controls() == controls_before + 1);
  EXPECT(slice.usage().denied == 14);
}

SCENARIO(other_processes_are_left_alone) {
  TestSlice slice(25, one_device());
  const Driver rm = driver(1);  // The agent's own process, in no slice.
  EXPECT(rm.is_ready());
  EXPECT(rm.alloc(1, 4096 * MiB) == 0);
  EXPECT(rm.alloc_class(2, device_handle, 0xc2) == 0x22);  // The driver's answer.
  EXPECT(rm.control_call(GUARD_SET_TIMESLICE) == 0);
  EXPECT(module_pinned(1) == 4096 * MiB);
  EXPECT(slice.usage().parts[0].used.count == 0);
  EXPECT(rm.free(1) == 0);
  close(rm.control);
  close(rm.node);
}

SCENARIO(cgroup_below_the_slice) {
  TestSlice slice(26, one_device());
  const std::string below = slice.cgroup + "/a", deeper = below + "/b";
  EXPECT(mkdir(below.c_str(), 0755) == 0 && mkdir(deeper.c_str(), 0755) == 0);
  EXPECT(exited_well(run_in(slice, [&] {
    const int procs = open((deeper + "/cgroup.procs").c_str(), O_WRONLY);
    STEP(write(procs, "0", 1) == 1);
    const Driver rm = driver();
    STEP(rm.alloc(1, beyond) == -ENOMEM && rm.alloc(1, quota) == 0);
    STEP(slice.usage().parts[0].used.count == quota);
    STEP(open("/dev/nvidia1", O_RDWR) == -1);
    return 0;
  })));
  rmdir(deeper.c_str());
  rmdir(below.c_str());
}

SCENARIO(allocation_that_cannot_be_recorded) {
  // Another guard with room for 16 blocks replaces this one.
  guard.reset();
  KernelGuard::remove(guard_directory);
  guard = std::move(*KernelGuard::open(guard_directory, hook, 16));
  {
    TestSlice slice(27, one_device());
    EXPECT(exited_well(run_in(slice, [&] {
      const Driver rm = driver();
      STEP(rm.alloc(1, 32 * MiB) == 0);  // 16 pages.
      STEP(rm.alloc(2, 10 * MiB) == 0);  // 5 pages that are counted, but not recorded.
      STEP(rm.alloc(3, 2 * MiB) == -ENOMEM);
      return 0;
    })));
    EXPECT(findings(GUARD_UNCOUNTED) == 1);
    EXPECT(slice.usage().uncounted == 1);
  }
  guard.reset();
  KernelGuard::remove(guard_directory);
  guard = std::move(*KernelGuard::open(guard_directory, hook));
}

SCENARIO(agent_killed) {
  const std::string cgroup = "/sys/fs/cgroup/slice28";
  mkdir(cgroup.c_str(), 0755);
  guard.reset();
  // The first agent sets the limits and is killed.
  const pid_t agent = fork();
  if (agent == 0) {
    auto own = KernelGuard::open(guard_directory, hook);
    if (!own || !(*own)->set_limits(28, one_device()) || !(*own)->add_cgroup(28, cgroup)) _exit(1);
    kill(getpid(), SIGKILL);
  }
  EXPECT(was_killed(wait_only(agent)));
  const auto enter = [&] {
    const int procs = open((cgroup + "/cgroup.procs").c_str(), O_WRONLY);
    if (write(procs, "0", 1) != 1) _exit(99);
  };
  // Without an agent: refusal, and the kill of a process beyond the limit.
  pid_t program = fork();
  if (program == 0) {
    enter();
    const Driver rm = driver();
    _exit(rm.alloc(1, beyond) == -ENOMEM && rm.alloc(1, quota) == 0 && open("/dev/nvidia1", O_RDWR) < 0 ? 0
                                                                                                        : 1);
  }
  EXPECT(exited_well(wait_only(program)));
  program = fork();
  if (program == 0) {
    enter();
    const Driver rm = driver();
    const pid_t sibling = fork();
    if (sibling == 0) _exit(usleep(300'000) == 0 && rm.alloc(2, 2 * MiB) == -ENOMEM ? 0 : 1);
    (void)rm.alloc_unread(1, beyond);
    pause();
  }
  EXPECT(was_killed(wait_only(program)));
  // The next agent finds the guard, the limits and the finding.
  guard = std::move(*KernelGuard::open(guard_directory, hook));
  EXPECT(guard->slices() == std::vector<uint64_t>{28});
  const auto usage = guard->usage(28);
  EXPECT(usage && usage->refused == 1 && usage->beyond == 0u);
  EXPECT(findings(GUARD_BEYOND) == 1);
  const int kill_file = open((cgroup + "/cgroup.kill").c_str(), O_WRONLY);
  EXPECT(write(kill_file, "1", 1) == 1);
  close(kill_file);
  EXPECT(is_released());
  while (rmdir(cgroup.c_str()) != 0 && errno == EBUSY) usleep(1000);
  guard->remove_slice(28);
}

// Prints what the guard adds to an ioctl of another device, and to an allocation with its release.
SCENARIO(cost) {
  const int null = open("/dev/null", O_RDWR);
  const auto unrelated = [&] { (void)ioctl(null, TIOCGWINSZ, nullptr); };
  TestSlice* const slice = new TestSlice(29, one_device());
  const Driver outside = driver();
  uint32_t words[8] = {client, device_handle, 0x20800110};
  const auto control_outside = [&] {
    (void)request(outside.control, 0x2a, words, sizeof words, Entry::native);
  };
  const auto allocate = [&](const Driver& rm) {
    rm.alloc(1, 2 * MiB);
    rm.free(1);
  };
  int ends[2];
  EXPECT(pipe(ends) == 0);
  const auto in_slice = [&] {
    EXPECT(exited_well(run_in(*slice, [&] {
      const Driver rm = driver();
      const long ns = median_ns(31, 200, [&] { allocate(rm); });
      return write(ends[1], &ns, sizeof ns) == sizeof ns ? 0 : 1;
    })));
    long ns = 0;
    EXPECT(read(ends[0], &ns, sizeof ns) == sizeof ns);
    return ns;
  };
  const long with[] = {median_ns(31, 2000, unrelated), median_ns(31, 1000, control_outside), in_slice()};
  guard->remove_slice(29);
  guard.reset();
  KernelGuard::remove(guard_directory);
  sleep(1);  // The kernel frees the programs.
  const long without[] = {median_ns(31, 2000, unrelated), median_ns(31, 1000, control_outside)};
  const pid_t child = fork();
  if (child == 0) {
    const Driver rm = driver();
    const long ns = median_ns(31, 200, [&] { allocate(rm); });
    _exit(write(ends[1], &ns, sizeof ns) == sizeof ns ? 0 : 1);
  }
  EXPECT(exited_well(wait_only(child)));
  long bare = 0;
  EXPECT(read(ends[0], &bare, sizeof bare) == sizeof bare);
  printf(
      "cost: ioctl of another device %ld ns instead of %ld; of the driver outside slices %ld instead of %ld; "
      "allocation and release in a slice %ld instead of %ld\n",
      with[0], without[0], with[1], without[1], with[2], bare);
  guard = std::move(*KernelGuard::open(guard_directory, hook));
  delete slice;
}
