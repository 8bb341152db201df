// Tests of the driver from a program's point of view. Every test runs its statements in child processes that
// open the built libcuda.so.1: a loaded driver stays loaded, so a parent that has loaded it could not fork
// clean children. REQUIRE ends the child with a message; the parent expects exit status 0.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>

#include "abi/cuda.h"

#define REQUIRE(condition)                                                                \
  do {                                                                                    \
    if (!(condition)) {                                                                   \
      std::fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition); \
      _exit(1);                                                                           \
    }                                                                                     \
  } while (false)
// Waits until another process has made the condition true. The death of a process with much memory takes
// longest.
#define EVENTUALLY(condition)                                                     \
  do {                                                                            \
    for (int waited = 0; waited < 20'000 && !(condition); ++waited) usleep(1000); \
    REQUIRE(condition);                                                           \
  } while (false)
#define OK(call)                                                                             \
  do {                                                                                       \
    if (const CUresult ok_result = (call); ok_result != CUDA_SUCCESS) {                      \
      std::fprintf(stderr, "%s:%d: %s returned %d\n", __FILE__, __LINE__, #call, ok_result); \
      _exit(1);                                                                              \
    }                                                                                        \
  } while (false)

namespace carve::sim {

inline constexpr size_t KiB = 1 << 10, MiB = 1 << 20, GiB = 1 << 30;
inline constexpr uint64_t us = 1000, ms = 1000 * us;  // In ns.

inline std::filesystem::path build_directory() {
  return std::filesystem::canonical("/proc/self/exe").parent_path().parent_path();
}
inline std::string library_path() { return build_directory() / "lib/carve/sim/libcuda.so.1"; }

// The driver of this process; children open it themselves.
inline void* library() {
  static void* const handle = [] {
    void* h = dlopen(library_path().c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!h) std::fprintf(stderr, "%s\n", dlerror()), _exit(1);
    return h;
  }();
  return handle;
}

// cu<&cuMemAlloc_v2>("cuMemAlloc_v2")(out, bytes), through the macro CU(cuMemAlloc_v2)(out, bytes).
template <class F>
F* entry(const char* name) {
  void* p = dlsym(library(), name);
  if (!p) std::fprintf(stderr, "%s is not exported\n", name), _exit(1);
  return reinterpret_cast<F*>(p);
}
#define CU(name) (::carve::sim::entry<decltype(::name)>(#name))

// A set of simulated devices in a temporary directory, and the children that use it.
class DriverTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/carve-sim-test.XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    directory_ = name;
    setenv("SIMGPU_DIR", name, 1);
    unsetenv("CUDA_VISIBLE_DEVICES");
    create("a10x2");
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  void create(const std::string& spec) { tool("create " + directory_ + " " + spec + " --force --seed 7"); }
  void fault(const std::string& words) { tool("fault " + directory_ + " " + words); }
  static void tool(const std::string& words) {
    const std::string command = (build_directory() / "bin/carve-sim").string() + " " + words + " >/dev/null";
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
  }

  static pid_t start(const std::function<void()>& body) {
    std::fflush(nullptr);
    const pid_t pid = fork();
    if (pid == 0) {
      alarm(100);  // Ends a child that would otherwise wait forever for a failed process.
      body();
      _exit(0);
    }
    return pid;
  }
  // Returns the exit status, or 128 + the signal.
  static int finish(pid_t pid) {
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {}
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  static int run(const std::function<void()>& body) { return finish(start(body)); }

  std::string directory_;
};

// A pipe on which processes wait for each other.
class Signal {
 public:
  Signal() {
    if (pipe(ends_) != 0) std::abort();
  }
  ~Signal() {
    close(ends_[0]);
    close(ends_[1]);
  }
  void give() const { (void)!write(ends_[1], "x", 1); }
  void take() const {
    char c;
    (void)!read(ends_[0], &c, 1);
  }

 private:
  int ends_[2];
};

// A pipe for small messages between the processes of a test.
class Pipe {
 public:
  Pipe() {
    if (pipe(ends_) != 0) std::abort();
  }
  ~Pipe() {
    close(ends_[0]);
    close(ends_[1]);
  }
  template <class T>
  void put(const T& x) const {
    REQUIRE(write(ends_[1], &x, sizeof x) == static_cast<ssize_t>(sizeof x));
  }
  template <class T>
  T take() const {
    T x;
    REQUIRE(read(ends_[0], &x, sizeof x) == static_cast<ssize_t>(sizeof x));
    return x;
  }

 private:
  int ends_[2];
};

// Initialises the driver and creates a context, as the first calls of a process do.
inline CUcontext begin(int device = 0) {
  CUcontext context = nullptr;
  OK(CU(cuInit)(0));
  OK(CU(cuCtxCreate_v2)(&context, 0, device));
  return context;
}
inline size_t free_now() {
  size_t free = 0, total = 0;
  OK(CU(cuMemGetInfo_v2)(&free, &total));
  return free;
}

inline double ms_since(std::chrono::steady_clock::time_point t) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - t).count();
}

inline constexpr const char spin_ptx[] =
    ".version 6.0\n.target sm_50\n.address_size 64\n"
    ".visible .entry carve_spin(.param .u64 nanoseconds, .param .u32 other) { ret; }\n"
    ".visible .entry plain(.param .u64 p) { ret; }\n"
    ".global .align 4 .b8 table[4096];\n";

inline CUfunction spin() {
  CUmodule module = nullptr;
  CUfunction f = nullptr;
  OK(CU(cuModuleLoadData)(&module, spin_ptx));
  OK(CU(cuModuleGetFunction)(&f, module, "carve_spin"));
  return f;
}
inline CUresult launch(CUfunction f, CUstream s, uint64_t ns, unsigned blocks = 72 * 6) {
  uint32_t other = 0;
  void* parameters[] = {&ns, &other};
  return CU(cuLaunchKernel)(f, blocks, 1, 1, 256, 1, 1, 0, s, parameters, nullptr);
}

}  // namespace carve::sim
