#include "cli/user_devices.h"

#include <cstdlib>

#include "cli/terminal.h"
#include "core/visible_list.h"
#include "runner/runner.h"

namespace carve::cli {
namespace {

const char* user_list(const api::SliceRequest& request) {
  const char* const list = std::getenv("CUDA_VISIBLE_DEVICES");
  return std::getenv(runner::slice_variable) != nullptr || !request.device.empty() ? nullptr : list;
}

}  // namespace

Result<std::vector<std::string>, std::string> user_devices(const client::AgentClient& agent,
                                                           const api::SliceRequest& request) {
  const char* const list = user_list(request);
  if (list == nullptr) return {};
  const auto known = agent.devices();
  if (!known) return {};
  std::vector<std::string> machine(known->devices.size());
  for (const api::Device& device : known->devices)
    if (device.index < machine.size()) machine[device.index] = device.uuid;
  std::vector<std::string> named = visible_devices(machine, machine, list);
  const uint32_t wanted = request.amounts.device_count();
  if (named.size() < wanted) return tl::unexpected(too_few_named(list, named.size(), wanted));
  return named;
}

std::vector<std::string> preferred_lists(const std::vector<std::string>& named, uint32_t wanted) {
  std::vector<std::string> out;
  std::string list;
  for (size_t i = 0; i < named.size(); ++i) {
    list += (i == 0 ? "" : ",") + named[i];
    if (i + 1 < wanted) continue;
    out.push_back(list);
  }
  return out;
}

std::string too_few_named(const std::string& list, size_t named, uint32_t wanted) {
  if (wanted == 1)
    return fmt::format(
        "CUDA_VISIBLE_DEVICES '{}' matches no device of this node; set it to an index or a UUID, unset it, "
        "or use --device",
        harmless(list.substr(0, 80)));
  return fmt::format(
      "--devices {}: CUDA_VISIBLE_DEVICES '{}' lists {} device{} of this node; list {} or more, unset it, or "
      "use --device",
      wanted, harmless(list.substr(0, 80)), named, named == 1 ? "" : "s", wanted);
}

}  // namespace carve::cli
