#include "kubernetes/node/dra/dra_side.h"

#include <sys/stat.h>

#include <algorithm>
#include <set>
#include <thread>

#include "os/clock.h"
#include "os/log.h"

namespace carve::kubernetes::node {
namespace {

constexpr size_t max_noted_pods = 16;  // Limit of the events about one call.
constexpr size_t max_rivals = 8;

bool exists(const std::string& path) {
  struct stat found {};
  return stat(path.c_str(), &found) == 0;
}

AboutObject about(const ClaimPod& pod) {
  return {.kind = "Pod", .name_space = pod.namespace_, .name = pod.name, .uid = pod.uid};
}

}  // namespace

std::string grant_note(const api::Slice& slice) {
  std::string parts;
  for (const api::SlicePart& part : slice.parts)
    parts += fmt::format("{}{} on device {} ({}, {})", parts.empty() ? "" : " and ",
                         text(Bytes{part.quota_bytes}), part.index, part.uuid, part.device_name);
  return fmt::format("granted {}; isolation {}, enforcement {}", parts, text(slice.isolation),
                     text(slice.enforcement.memory.level));
}

DraSide::DraSide(std::string node, DraSockets sockets, AgentApi& agent, Links links)
    : node_(std::move(node)),
      sockets_(std::move(sockets)),
      agent_(agent),
      links_(std::move(links)),
      preparer_(agent_, sources()) {}

DraSide::~DraSide() = default;

ClaimPreparer::Sources DraSide::sources() {
  return {.node = node_,
          .claim = links_.claim,
          .granted = [this](const SeenClaim& claim, const api::Slice& slice) { granted(claim, slice); },
          .refused = [this](const std::optional<SeenClaim>& claim, const std::string& message,
                            bool has_no_room) { refused(claim, message, has_no_room); },
          .now = os::monotonic_ns,
          .sleep = [](int64_t ns) { std::this_thread::sleep_for(std::chrono::nanoseconds(ns)); }};
}

DraHandlers DraSide::handlers() {
  return {.asked = links_.kubelet_asked,
          .registered =
              [this](const std::string& problem) {
                if (problem.empty())
                  os::log::info("DRA driver {} registered with kubelet", dra_driver);
                else
                  os::log::warning("kubelet rejected the DRA driver {}: {}", dra_driver, problem);
                links_.registered(problem);
              },
          .prepare =
              [this](const std::vector<ClaimName>& claims, const std::function<bool()>& is_over) {
                const int64_t end = os::monotonic_ns() + max_prepare_ns;
                std::vector<Result<std::vector<PreparedDevice>, std::string>> out;
                for (const ClaimName& claim : claims) out.push_back(preparer_.prepare(claim, end, is_over));
                return out;
              },
          .unprepare =
              [this](const std::vector<ClaimName>& claims) {
                std::vector<Result<void, std::string>> out;
                for (const ClaimName& claim : claims) out.push_back(preparer_.unprepare(claim));
                return out;
              }};
}

void DraSide::serve() {
  if (plugin_ && exists(sockets_.plugin) && exists(sockets_.registration)) return;
  plugin_.reset();
  auto plugin = DraPlugin::serve(sockets_, handlers());
  if (!plugin) {
    if (last_problem_ != plugin.error().message) os::log::warning("{}", plugin.error().message);
    last_problem_ = plugin.error().message;
    return;
  }
  last_problem_.clear();
  plugin_ = std::move(*plugin);
  os::log::info("DRA driver {} served at {}", dra_driver, sockets_.plugin);
}

bool DraSide::end() {
  const bool was_served = plugin_ != nullptr;
  plugin_.reset();
  return was_served;
}

void DraSide::report_health() {
  if (!plugin_) return;
  if (const auto report = agent_.report()) plugin_->set_health(device_conditions(node_, *report));
}

bool DraSide::look_up(const api::Slice& slice) {
  const auto name = claim_of(slice);
  if (!name) return true;
  const auto text = links_.claim(*name);
  if (!text) return false;
  // If the claim is gone, or another one has its name, the known pods remain.
  std::vector<ClaimPod> pods = slice.pods;
  if (*text)
    if (auto claim = read_claim(**text); claim && claim->name.uid == name->uid) pods = std::move(claim->pods);
  return agent_.set_pods(slice.name, {.pods = std::move(pods)}).has_value();
}

void DraSide::granted(const SeenClaim& claim, const api::Slice& slice) {
  os::log::info("claim {} has slice {}", claim.name.text(), slice.name);
  links_.expect_container();
  for (size_t i = 0; i < std::min(claim.pods.size(), max_noted_pods); ++i)
    links_.note({.about = about(claim.pods[i]),
                 .severity = Severity::normal,
                 .reason = "CarveSliceReady",
                 .action = "PrepareClaim",
                 .note = fmt::format("claim {}: {}", claim.name.text(), grant_note(slice))});
}

std::string DraSide::rivals(const SeenClaim& claim) {
  const auto report = agent_.report();
  if (!report) return "";
  std::set<uint32_t> devices;
  for (const ClaimResult& result : claim.results)
    for (const api::Device& device : report->devices)
      if (result.driver == dra_driver && result.device == device_name(device.index))
        devices.insert(device.index);
  std::vector<std::string> out;
  for (const api::Slice& slice : report->slices) {
    const bool is_there = std::ranges::any_of(
        slice.parts, [&](const api::SlicePart& part) { return devices.contains(part.index); });
    if (!is_there || out.size() == max_rivals) continue;
    const auto name = claim_of(slice);
    out.push_back(name           ? "claim " + name->text()
                  : slice.holder ? text(*slice.holder)
                                 : "slice " + slice.name);
  }
  return fmt::format("{}", fmt::join(out, ", "));
}

void DraSide::refused(const std::optional<SeenClaim>& claim, const std::string& message, bool has_no_room) {
  os::log::warning("cannot prepare a claim: {}", message);
  if (!claim) return;
  std::string note = message;
  if (has_no_room)
    if (const std::string others = rivals(*claim); !others.empty())
      note = fmt::format("{}; its devices have slices of {}", message, others);
  for (size_t i = 0; i < std::min(claim->pods.size(), max_noted_pods); ++i)
    links_.note({.about = about(claim->pods[i]),
                 .severity = Severity::warning,
                 .reason = has_no_room ? "CarveOvercommitted" : "CarveRefused",
                 .action = "PrepareClaim",
                 .note = note});
}

}  // namespace carve::kubernetes::node
