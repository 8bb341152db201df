// The kernel's data about a process. It is read from /proc and may be out of date immediately. A caller that
// needs certainty holds a pidfd and checks it again afterwards.
//
// None of these functions waits for the process. Files that a process can block others from reading (cmdline,
// environ, maps, exe, mem) are read only by node/inspect.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "os/fd.h"

namespace carve::os {

// Identifies a process even after its pid has been reused.
struct ProcessId {
  pid_t pid = 0;
  uint64_t start = 0;  // Clock ticks since boot: field 22 of /proc/PID/stat.

  explicit operator bool() const { return pid != 0; }
  friend bool operator==(const ProcessId&, const ProcessId&) = default;
  friend auto operator<=>(const ProcessId&, const ProcessId&) = default;
};

struct ProcessStat {
  ProcessId id;
  pid_t parent = 0;
  pid_t group = 0;    // Process group.
  pid_t session = 0;  // No new process gets this number while the session has a process.
  char state = '?';   // 'Z' means that it has ended and has not been waited for.
  std::string name;   // Name of the first thread, which that thread can set; at most 15 arbitrary bytes.
};

std::optional<std::string> read_file(const std::string& path, size_t most = 1 << 20);
bool write_file(const std::string& path, std::string_view text);  // Writes an existing file (cgroup files).

std::optional<ProcessStat> stat_of(pid_t);
std::vector<ProcessStat> all_processes();
pid_t inner_pid_of(pid_t);         // In its own pid namespace, the last entry of NSpid; 0 if unknown.
uint64_t pid_namespace_of(pid_t);  // Inode; 0 if unknown.

// Returns the lines of /proc/PID/cgroup: controllers -> path. The v2 line has the empty name.
std::map<std::string, std::string> cgroups_of(pid_t);

// Opens a pidfd of the process with exactly this start time. The result is empty if the process has ended.
Fd open_process(const ProcessId&);
std::optional<ProcessId> process_of(const Fd& pidfd);  // No value if the process has ended.
bool alive(const Fd& pidfd);
void send_signal(const Fd& pidfd, int signal);

const std::string& boot_id();  // Read once.

// Returns the folder of this process's program file.
std::string own_folder();

}  // namespace carve::os
