#include "controller/objects/gpu_text.h"

#include "base/share.h"
#include "objects/rules/service_terms.h"

namespace carve::controller {
namespace {

// Returns a text such as "8 GiB, 30% and 4 GiB, 10% of 2 devices".
std::string parts_text(const std::vector<objects::GpuPart>& parts) {
  std::string out;
  for (const objects::GpuPart& part : parts)
    out += fmt::format("{}{}{}", out.empty() ? "" : " and ", objects::memory_text(part.memory),
                       part.share.empty() ? "" : ", " + part.share);
  return fmt::format("{} of {} device{}", out, parts.size(), parts.size() == 1 ? "" : "s");
}

}  // namespace

std::string gpu_memory_text(const objects::Gpu& gpu) {
  std::string out = objects::memory_text(gpu.memory);
  for (const objects::GpuPart& part : gpu.parts)
    out += (out.empty() ? "" : ", ") + objects::memory_text(part.memory);
  return out;
}

std::string gpu_text(const objects::Gpu& gpu, const Amounts& amounts, const std::string& memory_text) {
  if (!gpu.parts.empty()) return parts_text(gpu.parts);
  const std::string several =
      amounts.devices > 1 ? fmt::format(" on each of {} devices", amounts.devices) : "";
  if (amounts.exclusive)
    return fmt::format("{} whole device{}", amounts.devices, amounts.devices == 1 ? "" : "s");
  const std::string share = amounts.share_bp
                                ? fmt::format("{} of a device", text(Share{*amounts.share_bp}).c_str())
                                : "no compute limit";
  return fmt::format("{}, {}{}", memory_text, share, several);
}

}  // namespace carve::controller
