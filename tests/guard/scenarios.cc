// Runs the scenarios: loads the guard, tests that it is in force, runs each scenario and prints one line for
// it. The arguments are names of scenarios; without any, all run.
#include "guard_scenarios.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <stdexcept>

#include "node/guard/self_test.h"

namespace guard_test {

std::unique_ptr<KernelGuard> guard;
carve::node::GuardHook hook = carve::node::GuardHook::security_module;

namespace {

constexpr const char* cgroups = "/sys/fs/cgroup";

std::vector<Scenario>& all_scenarios() {
  static std::vector<Scenario> out;
  return out;
}
std::map<uint32_t, unsigned> found;

void write_file(const std::string& path, const std::string& text) {
  const int fd = open(path.c_str(), O_WRONLY);
  if (fd < 0 || write(fd, text.data(), text.size()) < 0) perror(path.c_str());
  close(fd);
}

uint64_t module_figure(const std::string& line_start) {
  std::ifstream file("/proc/carve_standin");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(line_start)) return std::stoull(line.substr(line_start.size()));
  throw std::runtime_error("no module");
}

// Opens the guard as the agent does: by the first hook that is in force.
bool open_guard() {
  mkdir("/sys/fs/cgroup/probe", 0755);
  for (const auto form : {carve::node::GuardHook::security_module, carve::node::GuardHook::return_value}) {
    auto opened = KernelGuard::open(guard_directory, form);
    if (!opened) {
      printf("# %s\n", opened.error().message.c_str());
      continue;
    }
    const auto tested = carve::node::test_refusal(**opened, "/sys/fs/cgroup/probe", control_node);
    if (tested) {
      hook = form;
      guard = std::move(*opened);
      printf("hook: %s\n",
             form == carve::node::GuardHook::security_module ? "security module" : "return value");
      return true;
    }
    printf("# %s\n", tested.error().message.c_str());
    opened->reset();
    KernelGuard::remove(guard_directory);
  }
  return false;
}

bool run(const Scenario& scenario) {
  found.clear();
  const time_t begun = time(nullptr);
  try {
    scenario.run();
    printf("passed %s in %ld s\n", scenario.name, static_cast<long>(time(nullptr) - begun));
  } catch (const std::exception& error) {
    printf("FAILED %s: %s\n", scenario.name, error.what());
    return false;
  }
  fflush(stdout);
  return true;
}

}  // namespace

bool add_scenario(const Scenario& scenario) {
  all_scenarios().push_back(scenario);
  return true;
}

void fail(const char* file, int line, const std::string& what) {
  throw std::runtime_error(std::string(strrchr(file, '/') + 1) + ":" + std::to_string(line) + ": " + what);
}

uint64_t module_pinned(unsigned device) { return module_figure("device " + std::to_string(device) + " "); }
uint64_t module_controls() { return module_figure("controls "); }

TestSlice::TestSlice(uint64_t slice, const std::vector<GuardLimit>& limits)
    : id(slice), cgroup(std::string(cgroups) + "/slice" + std::to_string(slice)) {
  mkdir(cgroup.c_str(), 0755);
  if (const auto set = guard->set_limits(id, limits); !set) throw std::runtime_error(set.error().message);
  if (const auto added = guard->add_cgroup(id, cgroup); !added)
    throw std::runtime_error(added.error().message);
}
TestSlice::~TestSlice() {
  kill();
  while (rmdir(cgroup.c_str()) != 0 && errno == EBUSY) usleep(1000);
  guard->remove_slice(id);
}
GuardUsage TestSlice::usage() const { return guard->usage(id).value(); }
void TestSlice::kill() const { write_file(cgroup + "/cgroup.kill", "1"); }

pid_t start_in(const TestSlice& slice, const std::function<int()>& act) {
  fflush(stdout);
  const pid_t child = fork();
  if (child != 0) return child;
  write_file(slice.cgroup + "/cgroup.procs", "0");
  _exit(act());
}

int follow(const TestSlice& slice, pid_t child) {
  for (;;) {
    pollfd wait{guard->findings_fd(), POLLIN, 0};
    poll(&wait, 1, 5);
    for (const guard_finding& finding : guard->findings()) {
      ++found[finding.kind];
      if (finding.kind == GUARD_BEYOND && finding.slice == slice.id) slice.kill();
    }
    int status = 0;
    if (waitpid(child, &status, WNOHANG) == child) return status;
  }
}

int wait_only(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  return status;
}

int run_in(const TestSlice& slice, const std::function<int()>& act) {
  return follow(slice, start_in(slice, act));
}

unsigned findings(guard_finding_kind kind) {
  for (const guard_finding& finding : guard->findings()) ++found[finding.kind];
  return found[kind];
}

}  // namespace guard_test

int main(int argc, char** argv) {
  using namespace guard_test;
  setvbuf(stdout, nullptr, _IOLBF, 0);
  if (!open_guard()) {
    printf("FAILED the guard is not in force\n");
    return 1;
  }
  int failed = 0;
  for (const Scenario& scenario : all_scenarios()) {
    bool is_chosen = argc == 1;
    for (int i = 1; i < argc; ++i) is_chosen |= strcmp(argv[i], scenario.name) == 0;
    if (is_chosen && !run(scenario)) ++failed;
  }
  printf("trouble: %s\n", guard->trouble().c_str());
  printf("done: %d failed\n", failed);
  return failed;
}
