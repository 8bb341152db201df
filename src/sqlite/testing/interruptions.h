// Interruptions of a program that writes a SQLite file, for tests: death at a system call, and a disk that is
// full from some write on.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>

namespace carve::sqlite {

inline constexpr int no_ptrace = 77;  // Exit status of a child if ptrace is not permitted.

// Stops the child, which calls this, until its parent calls killed_at().
inline void wait_for_tracer() {
  if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) _exit(no_ptrace);
  raise(SIGSTOP);
}

// Runs the child to its n-th stop at a system call (there are two for each call, at entry and at return) and
// kills it there. Returns false if the child ended first.
inline bool killed_at(pid_t child, int n) {
  int status = 0;
  ptrace(PTRACE_SETOPTIONS, child, nullptr, PTRACE_O_EXITKILL);
  for (int stop = 0;; ++stop) {
    if (stop > n) {
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      return true;
    }
    if (ptrace(PTRACE_SYSCALL, child, nullptr, nullptr) != 0) ADD_FAILURE() << strerror(errno);
    if (waitpid(child, &status, 0) != child || !WIFSTOPPED(status)) {
      EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status;
      return false;
    }
  }
}

// While this exists, files are written with SQLite's own functions, but the disk is full after
// `writes_left` writes. -1 means no limit.
struct FullDisk {
  static inline int writes_left = -1;

  FullDisk() {
    real = sqlite3_vfs_find(nullptr);
    shim = *real;
    shim.zName = "full";
    shim.xOpen = [](sqlite3_vfs*, sqlite3_filename name, sqlite3_file* file, int flags, int* out) {
      const int code = real->xOpen(real, name, file, flags, out);
      if (file->pMethods == nullptr) return code;
      auto [entry, fresh] = methods.try_emplace(file->pMethods, *file->pMethods);
      entry->second.xWrite = write;
      original[&entry->second] = file->pMethods;
      file->pMethods = &entry->second;
      return code;
    };
    sqlite3_vfs_register(&shim, 1);
  }
  ~FullDisk() {
    sqlite3_vfs_unregister(&shim);
    sqlite3_vfs_register(real, 1);
    writes_left = -1;
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;

 private:
  static int write(sqlite3_file* file, const void* bytes, int count, sqlite3_int64 at) {
    if (writes_left == 0) return SQLITE_FULL;
    if (writes_left > 0) --writes_left;
    return original.at(file->pMethods)->xWrite(file, bytes, count, at);
  }
  static inline sqlite3_vfs* real = nullptr;
  static inline sqlite3_vfs shim;
  static inline std::map<const sqlite3_io_methods*, sqlite3_io_methods> methods;
  static inline std::map<const sqlite3_io_methods*, const sqlite3_io_methods*> original;
};

}  // namespace carve::sqlite
