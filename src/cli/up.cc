// `carve up` and `carve down`: start and stop this user's agent and controller in the background.
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <thread>

#include "cli/console.h"
#include "cli/services.h"
#include "cli/verbs.h"
#include "os/directory.h"
#include "os/process.h"
#include "wire/api/controller.h"
#include "wire/api/device.h"
#include "wire/api/node.h"
#include "wire/api/slice.h"

extern char** environ;

namespace carve::cli {
namespace {

constexpr std::chrono::seconds start_patience{30}, stop_patience{60}, second_answer_patience{2};
constexpr std::chrono::milliseconds poll_interval{50};

struct UpOptions {
  std::string sim, listen, state;
};

// Returns the folder for this user's sockets and logs, unless the user named another socket.
std::string runtime_folder() {
  if (geteuid() == 0) return "/run/carve";
  const char* xdg = std::getenv("XDG_RUNTIME_DIR");
  return xdg != nullptr && *xdg != '\0' ? std::string(xdg) + "/carve"
                                        : fmt::format("/tmp/carve-{}", geteuid());
}

// The sockets on which `up` starts the two programs and where `down` finds them.
struct Sockets {
  std::string folder;  // For the agent's socket and both logs.
  std::string agent, controller;
};
Sockets sockets_of(const Context& context) {
  const auto named = [](const std::string& flag, const char* variable) {
    const char* value = std::getenv(variable);
    return flag.empty() && value != nullptr ? std::string(value) : flag;
  };
  std::string agent = named(context.socket_flag, "CARVE_SOCKET");
  if (agent.empty()) agent = runtime_folder() + "/carved.sock";
  agent = std::filesystem::absolute(agent).string();
  const std::string folder = agent.substr(0, agent.rfind('/'));
  const std::string controller = named(context.controller_flag, "CARVE_CONTROLLER");
  return {
      .folder = folder,
      .agent = agent,
      // An https:// address is a controller on another machine; these verbs start and stop the one of this machine.
      .controller = controller.empty() || controller.starts_with("https://")
                        ? folder + "/controller.sock"
                        : std::filesystem::absolute(controller).string()};
}

// Returns the path of a program that is installed next to this one.
std::string beside(const char* program) { return os::own_folder() + "/" + program; }

// A program that was started, or the reason why it was not.
struct Started {
  pid_t pid = 0;
  int error = 0;  // An errno.
};

// Starts a program in its own session, with its output in a file.
Started start(const std::vector<std::string>& words, const std::string& log) {
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0640);
  posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
  Started out;
  out.error = posix_spawn(&out.pid, words[0].c_str(), &files, &attributes, pointers.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  return out;
}

// Returns the last line of a program's log, which usually has the reason why the program ended.
std::string last_line(const std::string& log) {
  std::istringstream lines(os::read_file(log).value_or(""));
  std::string line, last;
  while (std::getline(lines, line))
    if (!line.empty()) last = line;
  return cut(harmless(last), 300);
}

client::Answer<api::ControllerVersion> version_of(const client::Client& controller) {
  return controller.get<api::ControllerVersion>("/v1/version");
}

// Starts the program if it does not answer yet, and waits until it does.
template <class Ask>
auto started(Ask ask_version, const std::vector<std::string>& words, const std::string& log)
    -> decltype(ask_version()) {
  auto version = ask_version();
  if (version) return version;
  const Started program = start(words, log);
  if (program.error != 0)
    return tl::unexpected(
        api::Problem{.detail = fmt::format("{}: {}", words[0], std::strerror(program.error))});
  auto deadline = std::chrono::steady_clock::now() + start_patience;
  bool has_ended = false;  // Possibly because another `carve up` is starting one.
  while (!version && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(poll_interval);
    version = ask_version();
    if (version || has_ended || waitpid(program.pid, nullptr, WNOHANG) != program.pid) continue;
    has_ended = true;
    deadline = std::chrono::steady_clock::now() + second_answer_patience;
  }
  if (!version && has_ended)
    version.error().detail =
        fmt::format("{} ended: {} ({})", words[0].substr(words[0].rfind('/') + 1), last_line(log), log);
  else if (!version)
    version.error().detail += fmt::format("; see {}", log);
  return version;
}

// Reports that the running program was started with a different value of an option.
void refuse_other(Context& context, const char* program, const std::string& socket,
                  const std::string& value) {
  fmt::print(stderr, "carve: the {} at {} is already running, with {}; stop it first with carve down --all\n",
             program, socket, value);
  context.status = failed_status;
}

void up(Context& context, const UpOptions& options) {
  const Sockets sockets = sockets_of(context);
  const std::string& folder = sockets.folder;
  if (const auto made = os::make_directory(folder, geteuid() == 0 ? 0755 : 0700); !made) {
    fmt::print(stderr, "carve: {}\n", made.error().message);
    context.status = failed_status;
    return;
  }
  std::vector<std::string> agent_words = {beside("carved"), "--socket", sockets.agent};
  if (!options.sim.empty()) agent_words.insert(agent_words.end(), {"--sim", options.sim});
  std::vector<std::string> controller_words = {beside("carve-controller"), "--socket", sockets.controller};
  if (!options.listen.empty()) controller_words.insert(controller_words.end(), {"--listen", options.listen});
  const auto state_of = [&](const char* program) {
    return std::filesystem::absolute(options.state + program).lexically_normal().string();
  };
  if (!options.state.empty()) {
    agent_words.insert(agent_words.end(), {"--state", state_of("/agent")});
    controller_words.insert(controller_words.end(), {"--state", state_of("/controller")});
  }
  const client::AgentClient agent(sockets.agent);
  const client::Client controller(sockets.controller);
  const std::string found = std::filesystem::absolute(client::find_socket(context.socket_flag)).string();
  answered(context, started([&] { return agent.version(); }, agent_words, folder + "/carved.log"),
           [&](const auto& version) {
             if (!options.sim.empty() && version.simulated != options.sim)
               return refuse_other(
                   context, "agent", sockets.agent,
                   version.simulated.empty() ? "the GPUs of this machine" : "--sim " + version.simulated);
             if (!options.state.empty() && version.state != state_of("/agent"))
               return refuse_other(context, "agent", sockets.agent, "its state in " + version.state);
             const auto devices = agent.devices();
             fmt::print("agent       {} (process {}), {} device{}{}\n", sockets.agent, version.pid,
                        devices ? devices->devices.size() : 0,
                        devices && devices->devices.size() == 1 ? "" : "s",
                        version.simulated.empty() ? "" : ", simulated: " + version.simulated);
           });
  if (context.status != 0) return;
  setenv("CARVE_SOCKET", sockets.agent.c_str(), 1);  // The controller's default node.
  answered(
      context, started([&] { return version_of(controller); }, controller_words, folder + "/controller.log"),
      [&](const auto& version) {
        if (!options.state.empty() && version.state != state_of("/controller"))
          return refuse_other(context, "controller", sockets.controller, "its state in " + version.state);
        fmt::print("controller  {} (process {}){}\n", sockets.controller, version.pid,
                   version.endpoint.empty() ? "" : ", " + version.endpoint);
        if (version.console)
          answered(context, sign_in_address(controller),
                   [](const std::string& address) { fmt::print("console     {}\n", address); });
        if (found != sockets.agent)  // Other verbs would use the agent at this socket.
          fmt::print(stderr, "To use these: export CARVE_SOCKET={} CARVE_CONTROLLER={}\n", sockets.agent,
                     sockets.controller);
        if (context.screen.terminal)
          fmt::print(stderr, "Try: carve devices, then carve apply -f FILE --wait\n");
      });
}

// Ends a program with SIGTERM and waits until it has exited, so that its successor finds the state unlocked.
template <class Version>
void end(const client::Answer<Version>& version, const char* name) {
  if (!version) return fmt::print("{:<11} not running\n", name);
  const auto seen = os::stat_of(static_cast<pid_t>(version->pid));
  const os::Fd process = seen ? os::open_process(seen->id) : os::Fd();
  if (process) os::send_signal(process, SIGTERM);
  const auto deadline = std::chrono::steady_clock::now() + start_patience;
  while (process && os::alive(process) && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(poll_interval);
  fmt::print("{:<11} ended (process {})\n", name, version->pid);
}

// Returns the workloads that have replicas.
std::vector<ObjectName> held_workloads(const client::Client& controller) {
  std::vector<ObjectName> out;
  for (const objects::KindText& kind : objects::kinds) {
    if (!kind.is_workload) continue;
    const auto found = workloads(controller, kind.value);
    if (!found) continue;
    for (const objects::Service& s : *found)
      if (s.status.replicas != 0 || (!s.spec.stopped && s.spec.replicas != 0))
        out.push_back({kind.value, s.metadata.name, s.metadata.namespace_});
  }
  return out;
}

// Stops every workload, waits, and prints each stopped one. A workload that is being deleted cannot be
// stopped, but ends anyway.
void stop_workloads(Context& context, const client::Client& controller) {
  const std::vector<ObjectName> held = held_workloads(controller);
  for (const ObjectName& object : held)
    (void)controller.post<objects::Service>(object_path(object, "stop"), api::Nothing{});
  const auto deadline = std::chrono::steady_clock::now() + stop_patience;
  std::vector<ObjectName> left = held_workloads(controller);
  for (; !left.empty() && std::chrono::steady_clock::now() < deadline; left = held_workloads(controller))
    std::this_thread::sleep_for(poll_interval);
  for (const ObjectName& object : held)
    if (std::ranges::find(left, object) == left.end()) fmt::print("{} stopped\n", object.text());
  for (const ObjectName& object : left) {
    fmt::print(stderr, "carve: {} did not stop within {} s\n", object.text(), stop_patience.count());
    context.status = failed_status;
  }
}

void stop_all_slices(Context& context, const client::AgentClient& agent) {
  const auto slices = agent.slices();
  std::vector<std::string> names;
  for (const api::Slice& slice : slices ? slices->slices : std::vector<api::Slice>())
    names.push_back(slice.name);
  stop_slices(context, agent, names, StopWait::until_ended,
              [](const std::string& name) { fmt::print("slice       {} ended\n", name); });
}

// Ends the HAProxy process of the services' endpoints, which outlives the controller.
void end_haproxy(const std::string& state) {
  std::istringstream record(os::read_file(state + "/proxy/haproxy.process").value_or(""));
  std::string boot;
  os::ProcessId process;
  if (!(record >> boot >> process.pid >> process.start) || boot != os::boot_id()) return;
  if (const os::Fd held = os::open_process(process)) os::send_signal(held, SIGTERM);
}

constexpr const char* ends_all = "carve up, then carve down --all";

void down(Context& context, bool all) {
  const Sockets sockets = sockets_of(context);
  const client::AgentClient agent(sockets.agent);
  const client::Client controller(sockets.controller);
  if (all) stop_workloads(context, controller);
  const auto state = version_of(controller);
  end(state, "controller");
  if (all && state) end_haproxy(state->state);
  if (all) stop_all_slices(context, agent);  // At this point no controller requests another slice.
  const auto slices = agent.slices();
  end(agent.version(), "agent");
  if (!slices && all)
    fmt::print("slices      not ended, because the agent is not running; if some are still running, run {}\n",
               ends_all);
  if (!slices || slices->slices.empty()) return;
  fmt::print("still running, within their limits:\n");
  for (const api::Slice& slice : slices->slices)
    fmt::print("  {} {}\n", slice.name, cut(harmless(slice.command), 60));
  fmt::print("to end them too, run {}\n", ends_all);
}

}  // namespace

void add_up(CLI::App& app, Context& context) {
  CLI::App* verb = app.add_subcommand("up", "Start the agent and the controller in the background");
  auto options = std::make_shared<UpOptions>();
  verb->add_option("--sim", options->sim, "Use simulated devices instead of real ones, such as a10x2")
      ->type_name("SPEC");
  verb->add_option("--listen", options->listen,
                   "Address of the controller's API, or none [127.0.0.1:8470, if it is free]")
      ->type_name("ADDRESS:PORT");
  verb->add_option(
          "--state", options->state,
          "Directory for the state; the agent and the controller use its subdirectories agent and controller "
          "[for root /var/lib/carve and /var/lib/carve-controller, otherwise below ~/.local/state]")
      ->type_name("DIR");
  verb->footer("  carve up --sim a10x2");
  verb->callback([&context, options] { up(context, *options); });
}

void add_down(CLI::App& app, Context& context) {
  CLI::App* verb = app.add_subcommand("down", "Stop the agent and the controller; slices keep running");
  auto all = std::make_shared<bool>(false);
  verb->add_flag("--all", *all, "Stop the services and end all slices first");
  verb->callback([&context, all] { down(context, *all); });
}

}  // namespace carve::cli
