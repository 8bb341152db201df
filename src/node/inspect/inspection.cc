#include "node/inspect/inspection.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>

#include "wire/shm/layout.h"

namespace carve::node {
namespace {

constexpr size_t max_command_bytes = 200;
constexpr size_t max_maps_bytes = 64 << 20;

std::string command_of(const std::string& folder) {
  std::string text = os::read_file(folder + "/cmdline", max_command_bytes).value_or("");
  while (!text.empty() && text.back() == '\0') text.pop_back();
  std::ranges::replace(text, '\0', ' ');
  return text;
}

// Compares the executable's file, because any process can take the name.
bool is_mps_server(const std::string& folder) {
  struct stat runs {
  }, server{};
  return stat((folder + "/exe").c_str(), &runs) == 0 &&
         stat("/usr/bin/nvidia-cuda-mps-server", &server) == 0 && runs.st_dev == server.st_dev &&
         runs.st_ino == server.st_ino;
}

ProcessEvidence evidence_of(const std::string& folder, const std::string& maps) {
  const std::string environment = os::read_file(folder + "/environ").value_or("");
  const auto has = [](const std::string& where, std::string_view text) {
    return where.find(text) != std::string::npos;
  };
  ProcessEvidence seen;
  seen.our_library = has(maps, "/libcarve.so") || has(maps, "/lib/carve/shim/");
  seen.the_driver = has(maps, "/libcuda.so");
  seen.loader = has(maps, "/ld-linux") || has(maps, "/ld-musl") || has(maps, "/ld-2.");
  seen.preload_asked = has(environment, "libcarve.so");
  seen.is_mps_server = is_mps_server(folder);
  return seen;
}

bool lives(const os::ProcessId& process) {
  const auto now = os::stat_of(process.pid);
  return now && now->id == process && now->state != 'Z';
}

}  // namespace

Inspection inspect(const os::ProcessId& process) {
  const std::string folder = fmt::format("/proc/{}", process.pid);
  const auto before = os::stat_of(process.pid);
  Inspection out{
      .process = process, .command = command_of(folder), .name = before ? before->name : "", .evidence = {}};
  const std::string maps = os::read_file(folder + "/maps", max_maps_bytes).value_or("");
  out.maps_no_report_page = !maps.empty() && maps.find(shm::report_page_name) == std::string::npos;
  out.evidence = evidence_of(folder, maps);
  // The files belonged to this process only if it is still alive.
  if (!lives(process)) return {.process = process, .ended = true, .command = "", .name = "", .evidence = {}};
  return out;
}

os::Fd open_report_page(const os::ProcessId& process) {
  const std::string folder = fmt::format("/proc/{}", process.pid);
  const std::string maps = os::read_file(folder + "/maps", max_maps_bytes).value_or("");
  const size_t at = maps.find(shm::report_page_name);
  if (at == std::string::npos) return {};
  const size_t line = maps.rfind('\n', at) + 1;
  const std::string range = maps.substr(line, maps.find(' ', line) - line);
  os::Fd page(open(fmt::format("{}/map_files/{}", folder, range).c_str(), O_RDWR | O_CLOEXEC));
  return lives(process) ? std::move(page) : os::Fd();
}

std::string bracketed_name(pid_t pid) {
  const auto stat = os::stat_of(pid);
  return stat && !stat->name.empty() ? "[" + stat->name + "]" : "";
}

}  // namespace carve::node
