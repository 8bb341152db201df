#include "kubernetes/cli/kubectl_command.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>

#include "os/fd.h"

namespace carve::kubernetes::cli {
namespace {

struct Pipe {
  os::Fd read, write;
};

Pipe make_pipe() {
  int ends[2] = {-1, -1};
  if (pipe2(ends, O_CLOEXEC) != 0) return {};
  return {os::Fd(ends[0]), os::Fd(ends[1])};
}

// Reads both pipes to their ends, so that the program does not block on a full pipe. Returns false on
// timeout.
bool read_both(Pipe& out, Pipe& err, std::string& output, std::string& errors, int max_seconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(max_seconds);
  pollfd waiting[2] = {{out.read.get(), POLLIN, 0}, {err.read.get(), POLLIN, 0}};
  std::string* const texts[2] = {&output, &errors};
  while (waiting[0].fd >= 0 || waiting[1].fd >= 0) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    if (max_seconds != no_time_limit && left.count() <= 0) return false;
    if (poll(waiting, 2, max_seconds == no_time_limit ? -1 : static_cast<int>(left.count())) < 0) {
      if (errno != EINTR) return true;
      continue;
    }
    for (int i = 0; i < 2; ++i) {
      if (waiting[i].fd < 0 || waiting[i].revents == 0) continue;
      char buffer[65536];
      const ssize_t size = ::read(waiting[i].fd, buffer, sizeof buffer);
      if (size > 0) texts[i]->append(buffer, static_cast<size_t>(size));
      if (size == 0 || (size < 0 && errno != EINTR)) waiting[i].fd = -1;
    }
  }
  return true;
}

std::string last_line(std::string text) {
  while (text.ends_with('\n')) text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

}  // namespace

Result<std::string, std::string> run_kubectl(const KubectlOptions& options, std::vector<std::string> words,
                                             int max_seconds) {
  std::vector<std::string> all{"kubectl"};
  if (!options.kubeconfig.empty()) all.push_back("--kubeconfig=" + options.kubeconfig);
  if (!options.context.empty()) all.push_back("--context=" + options.context);
  all.insert(all.end(), options.more.begin(), options.more.end());
  all.insert(all.end(), words.begin(), words.end());
  std::vector<char*> pointers;
  for (std::string& word : all) pointers.push_back(word.data());
  pointers.push_back(nullptr);

  Pipe out = make_pipe(), err = make_pipe();
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, out.write.get(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&files, err.write.get(), STDERR_FILENO);
  pid_t pid = 0;
  const int problem = posix_spawnp(&pid, "kubectl", &files, nullptr, pointers.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  if (problem != 0)
    return tl::unexpected(
        fmt::format("cannot start kubectl: {}; make sure that it is on PATH", strerror(problem)));
  out.write.reset();
  err.write.reset();
  std::string output, errors;
  const bool has_ended = read_both(out, err, output, errors, max_seconds);
  if (!has_ended) kill(pid, SIGKILL);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {}
  if (!has_ended)
    return tl::unexpected(fmt::format("kubectl {} did not respond within {} s", words.front(), max_seconds));
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return output;
  const std::string why = last_line(errors);
  return tl::unexpected(why.empty() ? fmt::format("kubectl {} failed", words.front()) : why);
}

}  // namespace carve::kubernetes::cli
