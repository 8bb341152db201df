// A minimal agent for tests of the guest library: one slice, one thread, the attach protocol of
// wire/shm/FORMAT.md, and reclaiming of dead processes' lanes. A test can change any reply.
#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "wire/shm/attach.h"
#include "wire/shm/layout.h"

namespace carve::test {

// The pages of a slice as an agent creates them.
struct PageFiles {
  PageFiles();
  PageFiles(const PageFiles&) = delete;
  PageFiles& operator=(const PageFiles&) = delete;
  ~PageFiles();

  int control_fd, report_fd, heartbeat_fd;  // control_fd and heartbeat_fd are read-only.
  shm::Control* control;
  shm::Report* report;
  shm::Heartbeat* heartbeat;
};

struct Grant {
  std::vector<uint8_t> uuid;
  uint64_t quota;
  uint64_t context_bytes;
  uint64_t spill = 0;
};

class Agent {
 public:
  // Changes each reply before it is sent. If it returns false, the connection is closed without a reply.
  using Bend = std::function<bool(shm::AttachReply&)>;

  // Listens at `socket`, whose folder it makes and removes; at a new path if none is given.
  explicit Agent(const std::vector<Grant>& grants, Bend bend = {}, const std::string& socket = {});
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;
  ~Agent();

  const std::string& socket() const { return socket_; }
  PageFiles pages;

  // Return the number of attaches and of live processes.
  int attaches();
  int living();
  // Called when a process with a slot has died, before its lanes are reclaimed.
  std::function<void(int pid)> on_death;

 private:
  struct Process {
    int pid, pidfd;
    uint64_t image;
    unsigned slot;
  };
  void serve();
  void answer(int connection);
  void bury(size_t index);

  Bend bend_;
  std::string folder_, socket_;
  int listener_, stop_[2];
  std::mutex mutex_;
  std::vector<Process> processes_;
  int attaches_ = 0;
  std::thread thread_;
};

}  // namespace carve::test
