#include "kubernetes/node/rules/node_object.h"

#include <algorithm>

#include "kubernetes/api/json_walk.h"
#include "kubernetes/format/quantity.h"
#include "wire/api/json_value.h"

namespace carve::kubernetes::node {
namespace {

constexpr const char* other_resource = "nvidia.com/gpu";

class NodeWalk final : public kubernetes::JsonWalk {
 public:
  SeenNode node;

 private:
  void value(std::span<const kubernetes::JsonLevel> path, const std::string& text) override {
    if (path.size() == 3 && path[0].key == "status" && !path[1].is_list) {
      if (path[1].key == "capacity") node.capacity[path[2].key] = text;
      if (path[1].key == "allocatable") node.allocatable[path[2].key] = text;
    }
    if (is_in(path, "addresses") && path.size() == 4) {
      if (path.back().key == "type") address_type_ = text;
      if (path.back().key == "address") address_ = text;
    }
    if (!is_in(path, "conditions") || path.size() != 4) return;
    const std::string& key = path.back().key;
    if (key == "type") condition_.type = text;
    if (key == "status") condition_.is_true = text == "True";
    if (key == "reason") condition_.reason = text;
    if (key == "message") condition_.message = text;
  }
  void closed(std::span<const kubernetes::JsonLevel> path) override {
    if (path.size() != 3) return;
    if (is_in(path, "addresses")) {
      if (address_type_ == "InternalIP" && node.internal_ip.empty()) node.internal_ip = address_;
      address_type_.clear();
      address_.clear();
    }
    if (!is_in(path, "conditions")) return;
    if (condition_.type.starts_with("Carve")) node.conditions.push_back(condition_);
    condition_ = {};
  }
  // Returns whether this is an element, or a member of an element, of the list in the status.
  static bool is_in(std::span<const kubernetes::JsonLevel> path, std::string_view list) {
    return path.size() >= 3 && path[0].key == "status" && path[1].key == list && path[2].is_list;
  }
  Condition condition_;
  std::string address_type_, address_;
};

bool is_amount(const std::map<std::string, std::string>& quantities, const char* resource, uint64_t amount) {
  const auto found = quantities.find(resource);
  if (found == quantities.end()) return amount == 0;
  return kubernetes::parse_quantity(found->second) == amount;
}

}  // namespace

bool SeenNode::has_other_plugin() const { return !is_amount(allocatable, other_resource, 0); }

Result<SeenNode, std::string> read_node_object(std::string_view json) {
  auto meta = kubernetes::read_object(json);
  if (!meta) return tl::unexpected(meta.error());
  NodeWalk walk;
  if (!walk.read(json)) return tl::unexpected("a node: " + walk.problem());
  walk.node.meta = std::move(*meta);
  return std::move(walk.node);
}

namespace {

// Adds what the agent's state determines.
void add_known(api::Json& metadata, const SeenNode& seen, const Advertisement& wanted) {
  const std::string devices = api::write(wanted.devices);
  const auto annotation = seen.meta.annotations.find(kubernetes::devices_annotation);
  if (annotation == seen.meta.annotations.end() || annotation->second != devices)
    metadata["annotations"][kubernetes::devices_annotation] = devices;
  const auto ledger = seen.meta.annotations.find(kubernetes::ledger_annotation);
  const std::string drift = is_empty(wanted.drift) ? "" : api::write(wanted.drift);
  if (!drift.empty() && (ledger == seen.meta.annotations.end() || ledger->second != drift))
    metadata["annotations"][kubernetes::ledger_annotation] = drift;
  if (drift.empty() && ledger != seen.meta.annotations.end())
    metadata["annotations"][kubernetes::ledger_annotation] = nullptr;
  const auto label = seen.meta.labels.find(node_label);
  if (wanted.label && (label == seen.meta.labels.end() || label->second != *wanted.label))
    metadata["labels"][node_label] = *wanted.label;
  if (!wanted.label && label != seen.meta.labels.end()) metadata["labels"][node_label] = nullptr;
}

}  // namespace

std::optional<std::string> metadata_patch(const SeenNode& seen, const Advertisement& wanted) {
  api::Json metadata = api::Json::object();
  const auto reader = seen.meta.annotations.find(kubernetes::reader_annotation);
  const std::string served = wanted.reader ? api::write(*wanted.reader) : "";
  if (!served.empty() && (reader == seen.meta.annotations.end() || reader->second != served))
    metadata["annotations"][kubernetes::reader_annotation] = served;
  if (served.empty() && reader != seen.meta.annotations.end())
    metadata["annotations"][kubernetes::reader_annotation] = nullptr;
  if (wanted.is_known) add_known(metadata, seen, wanted);
  if (metadata.empty()) return std::nullopt;
  return api::Json{{"metadata", metadata}}.dump();
}

std::optional<std::string> status_patch(const SeenNode& seen, const Advertisement& wanted,
                                        const std::string& now) {
  api::Json status = api::Json::object();
  const std::pair<const char*, uint64_t> totals[] = {{memory_resource, wanted.totals.memory_bytes},
                                                     {compute_resource, wanted.totals.compute_percent}};
  for (const auto& [resource, amount] : totals) {
    if (!wanted.is_known) break;
    if (!is_amount(seen.capacity, resource, amount)) status["capacity"][resource] = std::to_string(amount);
    if (!is_amount(seen.allocatable, resource, amount))
      status["allocatable"][resource] = std::to_string(amount);
  }
  for (const Condition& condition : wanted.conditions) {
    if (std::ranges::find(seen.conditions, condition) != seen.conditions.end()) continue;
    status["conditions"].push_back({{"type", condition.type},
                                    {"status", condition.is_true ? "True" : "False"},
                                    {"reason", condition.reason},
                                    {"message", condition.message},
                                    {"lastHeartbeatTime", now},
                                    {"lastTransitionTime", now}});
  }
  if (status.empty()) return std::nullopt;
  return api::Json{{"status", status}}.dump();
}

}  // namespace carve::kubernetes::node
