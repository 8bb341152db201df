#include "node/slice/audit.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <array>
#include <utility>

#include "os/process.h"

namespace carve::node {
namespace {

constexpr std::array<std::pair<AuditAction, std::string_view>, 3> audit_names = {
    {{AuditAction::report, "report"}, {AuditAction::freeze, "freeze"}, {AuditAction::kill, "kill"}}};
constexpr std::array<std::pair<OverQuotaAction, std::string_view>, 3> over_quota_names = {
    {{OverQuotaAction::report, "report"},
     {OverQuotaAction::refuse, "refuse"},
     {OverQuotaAction::kill, "kill"}}};

template <class Names, class Value>
std::string_view name_of(const Names& names, Value value) {
  for (const auto& [v, name] : names)
    if (v == value) return name;
  return "?";
}

template <class Value, class Names>
std::optional<Value> value_of(const Names& names, std::string_view text) {
  for (const auto& [v, name] : names)
    if (name == text) return v;
  return std::nullopt;
}

}  // namespace

std::string_view text(AuditAction act) { return name_of(audit_names, act); }
std::string_view text(OverQuotaAction act) { return name_of(over_quota_names, act); }
std::optional<AuditAction> parse_audit_act(std::string_view s) {
  return value_of<AuditAction>(audit_names, s);
}
std::optional<OverQuotaAction> parse_over_quota_act(std::string_view s) {
  return value_of<OverQuotaAction>(over_quota_names, s);
}

ProcessEvidence looks_of(pid_t pid) {
  const std::string folder = fmt::format("/proc/{}", pid);
  const std::string maps = os::read_file(folder + "/maps", 4 << 20).value_or("");
  const std::string environment = os::read_file(folder + "/environ").value_or("");
  const auto has = [](const std::string& where, std::string_view text) {
    return where.find(text) != std::string::npos;
  };
  ProcessEvidence looks;
  looks.our_library = has(maps, "/libcarve.so") || has(maps, "/lib/carve/shim/");
  looks.the_driver = has(maps, "/libcuda.so");
  looks.loader = has(maps, "/ld-linux") || has(maps, "/ld-musl") || has(maps, "/ld-2.");
  looks.preload_asked = has(environment, "libcarve.so");
  return looks;
}

std::string why_unattached(const ProcessEvidence& looks) {
  if (looks.our_library && looks.the_driver)
    return "the library is loaded and was bypassed: dlmopen, RTLD_DEEPBIND or dlvsym found the driver "
           "directly";
  if (looks.our_library) return "the library is loaded, but the program uses the device without libcuda";
  if (!looks.loader) return "it is a static program, into which no library can be preloaded";
  if (!looks.preload_asked) return "it was started without LD_PRELOAD, because the variable was unset";
  return "the library is not loaded";
}

AuditAction answer_to(const BypassEvidence& caught, AuditAction configured) {
  return caught.limited && !caught.graphics_only && !caught.is_mps_server ? configured : AuditAction::report;
}

// Compares the file, because any process can take the name.
bool is_mps_server(pid_t pid) {
  struct stat runs {
  }, server{};
  return stat(fmt::format("/proc/{}/exe", pid).c_str(), &runs) == 0 &&
         stat("/usr/bin/nvidia-cuda-mps-server", &server) == 0 && runs.st_dev == server.st_dev &&
         runs.st_ino == server.st_ino;
}

}  // namespace carve::node
