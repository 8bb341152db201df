#include "controller/runtime/container_start.h"

#include <linux/capability.h>
#include <sys/prctl.h>

#include <algorithm>
#include <filesystem>

#include "wire/api/json_value.h"

namespace carve::controller {

// The variables of podman's own process. The container's variables are passed with their values.
constexpr std::string_view engine_variables[] = {"PATH", "HOME", "USER", "LANG", "TMPDIR", "XDG_RUNTIME_DIR"};

ContainerHost container_host() {
  return {.has_both_cgroup_versions = std::filesystem::exists("/sys/fs/cgroup/unified"),
          .may_raise_limits = prctl(PR_CAPBSET_READ, CAP_SYS_RESOURCE) == 1};
}

LaunchRequest container_request(const ProgramStart& start, const ContainerHost& host) {
  const std::string name = "carve-" + start.slice;
  std::vector<std::string> words = {
      container_engine, "run",  "--rm",           "--replace",
      "--name",         name,   "--network",      "host",
      "--log-driver",   "none", "--stop-timeout", fmt::format("{}", start.grace_seconds)};
  if (!host.may_raise_limits)
    words.insert(words.end(), {"--ulimit", "nofile=4096:4096", "--ulimit", "nproc=4096:4096"});
  if (host.has_both_cgroup_versions) words.insert(words.end(), {"--runtime", "runc"});
  if (!start.node.empty()) words.insert(words.end(), {"--device", "carve.dev/slice=" + start.slice});
  if (start.cpu_limit_milli != 0)
    words.insert(words.end(), {"--cpus", fmt::format("{}.{:03}", start.cpu_limit_milli / 1000,
                                                     start.cpu_limit_milli % 1000)});
  if (start.memory_limit_bytes != 0)
    words.insert(words.end(), {"--memory", fmt::format("{}b", start.memory_limit_bytes)});
  if (!start.workdir.empty()) words.insert(words.end(), {"--workdir", start.workdir});
  std::map<std::string, std::string> engine_env, env = start.env;
  if (start.node.empty()) hide_devices(env);
  for (const auto& [variable, value] : env) {
    const bool is_engines = std::ranges::find(engine_variables, variable) != std::end(engine_variables);
    words.insert(words.end(), {"--env", is_engines ? variable + "=" + value : variable});
    if (!is_engines) engine_env.emplace(variable, value);
  }
  // With an entrypoint podman also ignores the image's CMD, as Kubernetes does if a command is set.
  if (!start.command.empty())
    words.insert(words.end(), {"--entrypoint", api::Json(start.command)
                                                   .dump(-1, ' ', /*ensure_ascii=*/false,
                                                         api::Json::error_handler_t::replace)});
  words.push_back(start.image);
  words.insert(words.end(), start.args.begin(), start.args.end());
  return {.uid = start.owner_uid,
          .name = start.slice,
          .supervise = {.attempt = start.attempt,
                        .workdir = "/",
                        .command = std::move(words),
                        .env = std::move(engine_env),
                        .cleanup = {container_engine, "rm", "--force", "--ignore", "--time", "0", name}}};
}

void hide_devices(std::map<std::string, std::string>& env) {
  env["CUDA_VISIBLE_DEVICES"] = "";
  env["NVIDIA_VISIBLE_DEVICES"] = "void";  // As in containers that have a slice (node/cdi/cdi.cc).
}

}  // namespace carve::controller
