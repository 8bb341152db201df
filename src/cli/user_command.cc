#include "cli/user_command.h"

#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "runner/runner.h"

namespace carve::cli {
namespace {

// Ignores the signals of the terminal's keys as long as it lives, because they are meant for the command.
class KeysIgnored {
 public:
  KeysIgnored() {
    struct sigaction ignored {};
    ignored.sa_handler = SIG_IGN;
    sigaction(SIGINT, &ignored, &interrupt_);
    sigaction(SIGQUIT, &ignored, &quit_);
  }
  ~KeysIgnored() {
    sigaction(SIGINT, &interrupt_, nullptr);
    sigaction(SIGQUIT, &quit_, nullptr);
  }
  KeysIgnored(const KeysIgnored&) = delete;
  KeysIgnored& operator=(const KeysIgnored&) = delete;

 private:
  struct sigaction interrupt_ {};
  struct sigaction quit_ {};
};

}  // namespace

std::string command_from(const std::vector<const char*>& variables, std::string otherwise) {
  for (const char* const variable : variables)
    if (const char* value = std::getenv(variable); value != nullptr && *value != '\0') return value;
  return otherwise;
}

Result<int, std::string> run_user_command(const std::string& command,
                                          const std::vector<std::string>& arguments,
                                          const std::string& folder) {
  std::vector<std::string> words{"sh", "-c", command + " \"$@\"", command};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addchdir_np(&actions, folder.c_str());
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t keys;
  sigemptyset(&keys);
  sigaddset(&keys, SIGINT);
  sigaddset(&keys, SIGQUIT);
  posix_spawnattr_setsigdefault(&attributes, &keys);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  const KeysIgnored ignored;
  pid_t pid = 0;
  const int problem = posix_spawn(&pid, "/bin/sh", &actions, &attributes, pointers.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (problem != 0) return tl::unexpected(fmt::format("{}: {}", command, std::strerror(problem)));
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {}
  return runner::exit_status(status);
}

}  // namespace carve::cli
