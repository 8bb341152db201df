// A program that first creates an adverse condition for a library in it, and then uses the driver like any
// other program. Each condition is a row of the table at the end. Prints "ok TOTAL" if it saw only the slice
// and could not allocate a byte beyond the quota; otherwise prints a message and exits with status 1.
//
//   adverse_process NAME QUOTA_MIB [UID]
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <thread>
#include <vector>

#include "abi/cuda.h"

namespace {

[[noreturn]] __attribute__((format(printf, 1, 2))) void fail(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vdprintf(2, format, arguments);  // If standard error is closed, only the status reports the failure.
  va_end(arguments);
  _exit(1);
}

void* library() { return dlopen("libcuda.so.1", RTLD_NOW); }

template <class F>
F* entry(F*, const char* name) {
  void* found = dlsym(library(), name);
  if (found == nullptr) fail("no %s\n", name);
  return reinterpret_cast<F*>(found);
}
#define CU(name) entry(static_cast<decltype(&name)>(nullptr), #name)

uint64_t quota = 0;
const char* program = nullptr;
char** words = nullptr;

// Creates a context, a small and a large allocation. Checks that the quota is shown as the device's memory
// and that one byte beyond it is rejected. Returns the sum of the figures, so that the compiler removes
// nothing.
void use_the_driver() {
  CUcontext context = nullptr;
  CUdeviceptr small = 0, large = 0, beyond = 0;
  size_t free_bytes = 0, total = 0;
  if (const CUresult r = CU(cuInit)(0); r != CUDA_SUCCESS) fail("cuInit: %d\n", r);
  if (const CUresult r = CU(cuCtxCreate_v2)(&context, 0, 0); r != CUDA_SUCCESS) fail("cuCtxCreate: %d\n", r);
  if (const CUresult r = CU(cuMemAlloc_v2)(&small, 1000); r != CUDA_SUCCESS) fail("cuMemAlloc: %d\n", r);
  if (CU(cuMemGetInfo_v2)(&free_bytes, &total) != CUDA_SUCCESS || total != quota)
    fail("cuMemGetInfo: %zu in all\n", total);
  if (const CUresult r = CU(cuMemAlloc_v2)(&large, 64 << 20); r != CUDA_SUCCESS) fail("64 MiB: %d\n", r);
  if (CU(cuMemAlloc_v2)(&beyond, free_bytes) != CUDA_ERROR_OUT_OF_MEMORY) fail("the quota did not hold\n");
  CU(cuMemFree_v2)(small);
  CU(cuMemFree_v2)(large);
  CU(cuCtxDestroy_v2)(context);
}

int in_child(pid_t child) {
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) fail("no child\n");
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void expect_well(pid_t child, const char* whose) {
  if (const int status = in_child(child)) fail("%s: status %d\n", whose, status);
}

pid_t forked(void (*act)()) {
  const pid_t child = fork();
  if (child == 0) {
    act();
    _exit(0);
  }
  return child;
}

void plainly() { use_the_driver(); }

void fork_before_init() { expect_well(forked(use_the_driver), "the child"), use_the_driver(); }

// In CUDA, a child of an initialised parent has no driver. The result must remain the driver's own.
void fork_after_init() {
  use_the_driver();
  expect_well(forked([] {
                size_t a = 0, b = 0;
                _exit(CU(cuMemGetInfo_v2)(&a, &b) == CUDA_SUCCESS);
              }),
              "the child");
  use_the_driver();
}

void vfork_and_exec() {
  use_the_driver();
  char name[] = "plainly";
  char* arguments[] = {words[0], name, words[2], nullptr};
  for (int i = 0; i < 20; ++i) {
    const pid_t child = vfork();
    if (child == 0) {
      execv(program, arguments);
      _exit(127);
    }
    expect_well(child, "what was executed");
  }
  use_the_driver();
}

// Forks without libc, so no handler of pthread_atfork runs.
void raw_clone() {
  expect_well(static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, nullptr)) ?: (use_the_driver(), _exit(0), 0),
              "the clone");
  use_the_driver();
}

void exec_in_the_middle() {
  use_the_driver();
  char name[] = "plainly";
  char* arguments[] = {words[0], name, words[2], nullptr};
  execv(program, arguments);
  fail("exec\n");
}

void open_and_close() {
  for (int i = 0; i < 200; ++i) {
    void* handle = dlopen("libcuda.so.1", RTLD_LAZY);
    if (i == 100) use_the_driver();
    dlclose(handle);
  }
  use_the_driver();
}

// Closes all descriptors, as daemons do. Afterwards the library's socket and descriptors get the numbers 0 to
// 3.
void close_everything() {
  for (int fd = 0; fd <= 1000; ++fd) close(fd);
  use_the_driver();
}

// Closes all descriptors after the initialisation except the driver's own, which the driver needs.
void close_all_but_the_drivers() {
  use_the_driver();
  char path[64], target[512];
  for (int fd = 3; fd <= 1000; ++fd) {
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    const ssize_t length = readlink(path, target, sizeof target - 1);
    if (length <= 0) continue;
    target[length] = '\0';
    if (strstr(target, "/sim/") == nullptr && strstr(target, "/dev/nvidia") == nullptr) close(fd);
  }
  use_the_driver();
}

// Rejects the same calls as Docker's default profile, in the same way.
void seccomp() {
  constexpr int refused[] = {SYS_acct,
                             SYS_add_key,
                             SYS_bpf,
                             SYS_clock_adjtime,
                             SYS_clock_settime,
                             SYS_delete_module,
                             SYS_finit_module,
                             SYS_init_module,
                             SYS_ioperm,
                             SYS_iopl,
                             SYS_kcmp,
                             SYS_kexec_load,
                             SYS_keyctl,
                             SYS_lookup_dcookie,
                             SYS_mbind,
                             SYS_mount,
                             SYS_move_pages,
                             SYS_name_to_handle_at,
                             SYS_open_by_handle_at,
                             SYS_perf_event_open,
                             SYS_personality,
                             SYS_pivot_root,
                             SYS_process_vm_readv,
                             SYS_process_vm_writev,
                             SYS_ptrace,
                             SYS_quotactl,
                             SYS_reboot,
                             SYS_request_key,
                             SYS_set_mempolicy,
                             SYS_setns,
                             SYS_settimeofday,
                             SYS_swapon,
                             SYS_swapoff,
                             SYS_syslog,
                             SYS_umount2,
                             SYS_unshare,
                             SYS_userfaultfd,
                             SYS_vhangup,
                             SYS_open_tree,
                             SYS_move_mount,
                             SYS_fsopen,
                             SYS_pidfd_getfd,
                             SYS_io_uring_setup,
                             SYS_io_uring_enter};
  std::vector<sock_filter> filter = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
  for (size_t i = 0; i < std::size(refused); ++i)
    filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(refused[i]),
                              static_cast<unsigned char>(std::size(refused) - i), 0));
  filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 1));
  sock_fprog whole{static_cast<unsigned short>(filter.size()), filter.data()};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &whole) != 0)
    fail("no filter\n");
  use_the_driver();
}

void chroot_after_init() {
  use_the_driver();
  char empty[] = "/tmp/adverse-XXXXXX";
  if (mkdtemp(empty) == nullptr || chroot(empty) != 0 || chdir("/") != 0) fail("chroot\n");
  use_the_driver();
}

void other_uid() {
  const auto uid = static_cast<uid_t>(atoi(words[3]));
  use_the_driver();
  const pid_t child = fork();
  if (child == 0) {
    if (setgid(uid) != 0 || setuid(uid) != 0) fail("setuid\n");
    char name[] = "plainly";
    char* arguments[] = {words[0], name, words[2], nullptr};
    execv(program, arguments);
    fail("exec as uid %u\n", uid);
  }
  expect_well(child, "the other user");
}

void pid_namespace() {
  if (unshare(CLONE_NEWPID) != 0) fail("unshare\n");
  expect_well(forked(use_the_driver), "the child in a namespace of its own");
}

void racing_threads() {
  std::vector<std::thread> threads;
  for (int i = 0; i < 16; ++i) threads.emplace_back([] { CU(cuInit)(0); });
  for (std::thread& thread : threads) thread.join();
  use_the_driver();
}

// The program's own signal handlers and mask must be unchanged.
void signals() {
  struct sigaction before[32], after[32];
  sigset_t mask_before, mask_after;
  for (int s = 1; s < 32; ++s) sigaction(s, nullptr, &before[s]);
  sigprocmask(SIG_SETMASK, nullptr, &mask_before);
  const mode_t umask_before = umask(0137);
  use_the_driver();
  if (umask(umask_before) != 0137) fail("the umask changed\n");
  sigprocmask(SIG_SETMASK, nullptr, &mask_after);
  if (memcmp(&mask_before, &mask_after, sizeof mask_before) != 0) fail("the signal mask changed\n");
  for (int s = 1; s < 32; ++s) {
    sigaction(s, nullptr, &after[s]);
    if (before[s].sa_handler != after[s].sa_handler) fail("the handler of signal %d changed\n", s);
  }
}

constexpr struct {
  const char* name;
  void (*act)();
} adverse_programs[] = {
    {"plainly", plainly},
    {"fork-before-init", fork_before_init},
    {"fork-after-init", fork_after_init},
    {"vfork-and-exec", vfork_and_exec},
    {"raw-clone", raw_clone},
    {"exec-in-the-middle", exec_in_the_middle},
    {"open-and-close", open_and_close},
    {"close-everything", close_everything},
    {"close-all-but-the-drivers", close_all_but_the_drivers},
    {"seccomp", seccomp},
    {"chroot-after-init", chroot_after_init},
    {"other-uid", other_uid},
    {"pid-namespace", pid_namespace},
    {"racing-threads", racing_threads},
    {"signals", signals},
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    for (const auto& program : adverse_programs) printf("%s\n", program.name);
    return 2;
  }
  quota = strtoull(argv[2], nullptr, 10) << 20;
  program = "/proc/self/exe";
  words = argv;
  for (const auto& program : adverse_programs) {
    if (strcmp(program.name, argv[1]) != 0) continue;
    program.act();
    return 0;
  }
  return 2;
}
