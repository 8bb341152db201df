// Runs a program with its own environment and reads its output.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <stdexcept>
#include <string>
#include <vector>

namespace carve::test {

class Child {
 public:
  Child(std::vector<std::string> arguments, std::vector<std::string> environment) {
    int out[2], in[2];
    if (pipe2(out, O_CLOEXEC) != 0 || pipe2(in, O_CLOEXEC) != 0) throw std::runtime_error("pipe");
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], 0);
    posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    environment.push_back("PATH=/usr/bin:/bin");
    std::vector<char*> argv, envp;
    for (auto& a : arguments) argv.push_back(a.data());
    for (auto& e : environment) envp.push_back(e.data());
    argv.push_back(nullptr);
    envp.push_back(nullptr);
    const int failed = posix_spawnp(&pid_, argv[0], &actions, nullptr, argv.data(), envp.data());
    posix_spawn_file_actions_destroy(&actions);
    close(out[1]);
    close(in[0]);
    out_ = out[0];
    in_ = in[1];
    if (failed != 0) throw std::runtime_error(arguments[0] + ": " + strerror(failed));
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      wait();
    }
    close(out_);
    close_input();
  }

  pid_t pid() const { return pid_; }
  void kill() { ::kill(pid_, SIGKILL); }
  // Lets a program that waits for its input continue or end.
  void nudge() {
    if (write(in_, "\n", 1) != 1) throw std::runtime_error("the program is gone");
  }
  void close_input() {
    if (in_ >= 0) close(in_);
    in_ = -1;
  }

  // Returns the next line without its end; "" at the end of the output or after 20 s.
  std::string line() {
    std::string text;
    char c = 0;
    for (;;) {
      pollfd p = {out_, POLLIN, 0};
      if (poll(&p, 1, 60'000) <= 0 || read(out_, &c, 1) != 1 || c == '\n') return text;
      text += c;
    }
  }

  // Returns the exit status, or 128 + N for signal N. A program that still runs after 60 s is killed.
  int wait() {
    int status = 0;
    for (int tries = 0; tries < 60'000; ++tries) {
      const pid_t done = waitpid(pid_, &status, WNOHANG);
      if (done == pid_) {
        pid_ = -1;
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      }
      usleep(1000);
    }
    ::kill(pid_, SIGKILL);
    waitpid(pid_, &status, 0);
    pid_ = -1;
    return 128 + SIGKILL;
  }

 private:
  pid_t pid_ = -1;
  int out_ = -1, in_ = -1;
};

}  // namespace carve::test
