#include "controller/api/node_routes.h"

#include <algorithm>
#include <iterator>

#include "controller/api/list_query.h"
#include "controller/api/planning.h"
#include "controller/api/query.h"
#include "controller/nodes/node_rules.h"
#include "controller/nodes/policy_change.h"
#include "dialects/label_synonyms.h"
#include "objects/rules/service_terms.h"
#include "os/clock.h"
#include "wire/api/json_value.h"
#include "wire/api/warning.h"

namespace carve::controller {
namespace {

std::string moment(int64_t utc_ns) {
  return utc_ns == 0 ? "" : os::rfc3339(utc_ns, os::Decimals::nanoseconds);
}

}  // namespace

Object with_agent(Object node, const NodeObservation& known) {
  objects::NodeStatus status = node_status(node);
  status.agent = objects::NodeAgentStatus{.socket = known.record.socket,
                                          .reachability = known.reachability,
                                          .problem = known.problem,
                                          .version = known.record.agent_version,
                                          .started_at = moment(known.record.agent_started_ns),
                                          .first_seen_at = moment(known.record.first_seen_ns),
                                          .last_seen_at = moment(known.record.last_seen_ns)};
  node.status = std::move(status);
  return node;
}

namespace {

struct FoundNode {
  Pointer object;
  NodeObservationPointer known;
};

// Returns the nodes given on the command line, in its order.
std::vector<FoundNode> known_nodes(const Call& call) {
  std::vector<FoundNode> out;
  for (NodeObservationPointer& known : call.context.views.nodes())
    if (Pointer object = call.context.objects.find(node_key(known->record.name)))
      out.push_back({std::move(object), std::move(known)});
  return out;
}

Outcome<FoundNode> named_node(const Call& call) {
  std::vector<FoundNode> all = known_nodes(call);
  const auto found =
      std::ranges::find(all, call.names[0], [](const FoundNode& node) { return node.known->record.name; });
  if (found != all.end()) return std::move(*found);
  std::vector<std::string> names;
  for (const FoundNode& node : all) names.push_back(node.known->record.name);
  return failure(FailureKind::not_found, "there is no node {}; the nodes are {}", call.names[0].substr(0, 80),
                 fmt::join(names, ", "));
}

// Returns the node that the path names if the caller may change nodes and knows its current version.
Outcome<FoundNode> changeable_node(const Call& call) {
  if (!call.caller.may_operate())
    return failure(FailureKind::permission_denied, "only operators may change nodes; {} is not an operator",
                   call.caller.text());
  auto node = named_node(call);
  if (!node) return node;
  if (const auto is_expected = check_version(call, *node->object); !is_expected)
    return tl::unexpected(is_expected.error());
  return node;
}

http::Response shown_node(const Object& node, const NodeObservation& known) {
  http::Response response{200, "application/json", document_of(with_agent(node, known))};
  response.headers.push_back({"ETag", fmt::format("\"{}\"", node.version)});
  return response;
}

// Stores the edited node and sends the changes to its agent.
http::Response kept(const Call& call, const FoundNode& node, const std::function<void(Object&)>& edit) {
  const auto updated = call.context.objects.update(node.object->key, [&](Object& object) -> Outcome<void> {
    edit(object);
    return {};
  });
  if (!updated) return refuse(updated.error());
  if (call.context.node_actions != nullptr) call.context.node_actions->poll();
  const Pointer now = call.context.objects.find(node.object->key);
  return shown_node(now ? *now : **updated, *node.known);
}

http::Response kept_spec(const Call& call, const std::function<void(objects::NodeSpec&)>& edit) {
  const auto node = changeable_node(call);
  if (!node) return refuse(node.error());
  return kept(call, *node, [&](Object& object) {
    objects::NodeSpec spec = node_spec(object);
    edit(spec);
    object.spec = std::move(spec);
  });
}

// A patch that was parsed, with the labels that it removes.
struct ReadPatch {
  objects::NodePatch patch;
  std::vector<std::string> removed;
};

Result<ReadPatch, http::Response> read_patch(const std::string& body) {
  auto json = api::parse(body, api::Decimals::as_doubles, api::max_depth, api::max_nodes);
  if (!json) return tl::unexpected(refuse(FailureKind::invalid_argument, json.error()));
  ReadPatch out;
  if (json->is_object() && json->contains("metadata") && (*json)["metadata"].is_object() &&
      (*json)["metadata"].contains("labels") && (*json)["metadata"]["labels"].is_object()) {
    api::Json& labels = (*json)["metadata"]["labels"];
    for (const auto& [key, value] : labels.items())
      if (value.is_null()) out.removed.push_back(key);
    for (const std::string& key : out.removed) labels.erase(key);
  }
  auto patch = api::read_all<objects::NodePatch>(json->dump(), api::Reading::strict);
  if (!patch) return tl::unexpected(refuse(patch.error()));
  out.patch = std::move(*patch);
  return out;
}

// Returns the response that rejects the label; no value if the label may be set.
std::optional<http::Response> refused_label(const Object& node, const std::string& key,
                                            const std::string& value, int64_t now_ns) {
  const std::string ours = dialects::our_key(key), &name = node.key.name;
  const objects::NodeStatus& status = node_status(node);
  if (std::ranges::find(status.removed_labels, ours) != status.removed_labels.end())
    return refuse_as(
        "carve:immutable",
        fmt::format("{} is a system label that was removed from node {}; restart the node (carve "
                    "node restart {}), then add it again",
                    key, name, name));
  const auto checked = workload::check_edit(pool_node(node, now_ns), ours, value);
  if (checked) return std::nullopt;
  if (checked.error().kind != FailureKind::failed_precondition) return refuse(checked.error());
  std::string message = checked.error().message;
  for (size_t at = 0; key != ours && (at = message.find(ours, at)) != std::string::npos; at += key.size())
    message.replace(at, ours.size(), key);
  return refuse_as("carve:immutable", std::move(message));
}

// Returns the response that rejects a change of the memory unit while slices in units run; no value if it may
// change.
std::optional<http::Response> refused_unit(const Call& call, const Object& node, const std::string& unit) {
  const objects::NodeStatus& status = node_status(node);
  if (call.context.node_actions == nullptr || status.memory_unit.effective == unit) return std::nullopt;
  const auto holders = call.context.node_actions->slices_in_units(node.key.name);
  if (!holders) return refuse(holders.error());
  if (holders->empty()) return std::nullopt;
  return refuse_as(
      "carve:blocked",
      fmt::format("the memory unit of node {} stays {} while slices that were requested in units "
                  "run: {}; stop these slices, or use --when-free",
                  node.key.name, status.memory_unit.effective, fmt::join(*holders, ", ")),
      *holders);
}

std::optional<http::Response> refused_pool(const Call& call, const std::optional<std::string>& pool) {
  if (!pool || pool->empty() || call.context.objects.find(pool_key(*pool))) return std::nullopt;
  return refuse(
      api::FieldErrors{{.field = "spec.pool",
                        .value = pool->substr(0, 80),
                        .message = fmt::format("spec.pool: there is no pool '{}'", pool->substr(0, 80))}});
}

// Checks labels with keys in any dialect and Carve's values. `waits` means that a memory unit may become
// effective later.
std::optional<http::Response> refused_labels(const Call& call, const Object& node,
                                             const std::map<std::string, std::string>& labels, bool waits) {
  for (const auto& [key, value] : labels) {
    if (auto refused = refused_label(node, key, value, call.context.views.now_ns())) return refused;
    if (dialects::our_key(key) != workload::memory_unit_label || waits) continue;
    if (auto refused = refused_unit(call, node, value)) return refused;
  }
  return std::nullopt;
}

// Returns the warnings about labels in Carve's terms.
std::vector<std::string> label_warnings(const Call& call, const Object& node,
                                        const std::map<std::string, std::string>& labels) {
  const auto policy = labels.find(std::string(workload::compute_policy_label));
  if (policy == labels.end()) return {};
  return policy_warnings({node.key.name}, policy->second, call.context.objects.list(objects::Kind::node),
                         call.context.objects.workloads());
}

// Checks the removal of labels. A node without its memory unit label has the default unit.
std::optional<http::Response> refused_removal(const Call& call, const Object& node,
                                              const std::vector<std::string>& removed, bool waits) {
  const auto is_unit = [](const std::string& key) {
    return dialects::our_key(key) == workload::memory_unit_label;
  };
  if (waits || std::ranges::none_of(removed, is_unit)) return std::nullopt;
  if (!node.labels.contains(std::string(workload::memory_unit_label))) return std::nullopt;
  return refused_unit(call, node, std::string(text(MemoryUnit::gib)));
}

void cordon(const Call& call, objects::NodeSpec& spec) {
  const auto uid = call.caller.uid();
  const std::string by = uid ? call.context.views.user_name(*uid) : call.caller.text();
  spec.schedulable = false;
  spec.cordoned =
      fmt::format("{} since {}", by, os::rfc3339(call.context.views.now_ns(), os::Decimals::milliseconds));
}

void edit_spec(const Call& call, const objects::NodePatchSpec& wanted, objects::NodeSpec& spec,
               objects::NodeStatus& status) {
  if (wanted.pool && *wanted.pool != spec.pool) {
    spec.pool = *wanted.pool;
    status.is_initialised = false;  // A node that joins a pool gets all of its labels and taints.
    status.taints.clear();
  }
  if (wanted.instance_type) spec.instance_type = *wanted.instance_type;
  if (!wanted.schedulable || *wanted.schedulable == spec.schedulable) return;
  if (!*wanted.schedulable) return cordon(call, spec);
  spec.schedulable = true;
  spec.cordoned = "";
  spec.draining = false;
}

}  // namespace

http::Response list_nodes(const Call& call) {
  const auto query = parse_list_query(call.request.query, objects::Kind::node);
  if (!query) return refuse(query.error());
  const uint64_t version = call.context.objects.version();
  std::map<ObjectKey, FoundNode> known;  // In the order of the list.
  std::vector<Pointer> nodes;
  for (FoundNode& node : known_nodes(call)) {
    const ObjectKey key = node.object->key;
    known.emplace(key, std::move(node));
  }
  for (const auto& [key, node] : known) nodes.push_back(node.object);
  const ListPage page = page_of(nodes, *query);
  std::string items;
  for (const Pointer& node : page.objects)
    items += (items.empty() ? "" : ",") + document_of(with_agent(*node, *known.at(node->key).known));
  return {200, "application/json",
          fmt::format(R"({{"items":[{}],"metadata":{{"resourceVersion":"{}","continue":"{}"}}}})", items,
                      version, page.next)};
}

http::Response get_node(const Call& call) {
  const auto node = named_node(call);
  return node ? shown_node(*node->object, *node->known) : refuse(node.error());
}

http::Response patch_node(const Call& call) {
  const auto query = parse_query(call.request.query, {"namespace", "whenFree"});
  if (!query) return refuse(query.error());
  const auto node = changeable_node(call);
  if (!node) return refuse(node.error());
  auto read = read_patch(call.request.body);
  if (!read) return std::move(read.error());
  // The labels are checked under another name, because a node's name is a host name, which follows other
  // rules.
  if (auto wrong = objects::check_metadata({.name = "n", .labels = read->patch.metadata.labels});
      !wrong.empty())
    return refuse(std::move(wrong));
  const auto labels = dialects::our_labels(read->patch.metadata.labels, "metadata.labels");
  if (!labels) return refuse(labels.error());
  if (auto refused = refused_pool(call, read->patch.spec.pool)) return std::move(*refused);
  const bool waits = query->contains("whenFree") && query->at("whenFree") != "false";
  std::map<std::string, std::string> given;  // Keys in the caller's dialect, values in Carve's.
  for (const auto& [key, value] : read->patch.metadata.labels)
    given[key] = labels->at(dialects::our_key(key));
  if (auto refused = refused_labels(call, *node->object, given, waits)) return std::move(*refused);
  if (auto refused = refused_removal(call, *node->object, read->removed, waits)) return std::move(*refused);
  const std::vector<std::string> warnings =
      label_warnings(call, *node->object, {labels->begin(), labels->end()});
  http::Response response = kept(call, *node, [&](Object& object) {
    objects::NodeSpec spec = node_spec(object);
    objects::NodeStatus status = node_status(object);
    edit_spec(call, read->patch.spec, spec, status);
    for (const auto& [key, value] : *labels) object.labels[key] = value;
    for (const std::string& key : read->removed) {
      const std::string ours = dialects::our_key(key);
      if (object.labels.erase(ours) != 0 && workload::is_system_label(ours))
        status.removed_labels.push_back(ours);
    }
    object.spec = std::move(spec);
    object.status = std::move(status);
  });
  if (response.status == 200)
    for (const std::string& warning : warnings)
      response.headers.push_back({std::string(api::warning_header), api::warning_value(warning)});
  return response;
}

std::vector<std::string> node_warnings(const Call& call, const Submission& submission) {
  std::vector<std::string> out = warnings_of(call, submission);
  if (const Pointer node = call.context.objects.find(node_key(submission.metadata.name)))
    std::ranges::move(label_warnings(call, *node, submission.metadata.labels), std::back_inserter(out));
  return out;
}

Outcome<Object> planned_node(const Call& call, const Submission& submission) {
  if (!call.caller.may_operate())
    return failure(FailureKind::permission_denied, "only operators may change nodes; {} is not an operator",
                   call.caller.text());
  const Pointer present = call.context.objects.find(node_key(submission.metadata.name));
  if (!present)
    return failure(FailureKind::not_found,
                   "there is no node {}; nodes are added with the controller's option --node",
                   submission.metadata.name);
  Object object = *present;
  objects::NodeSpec spec = node_spec(object);
  objects::NodeStatus status = node_status(object);
  edit_spec(call, submission.spec.as<objects::NodePatchSpec>(), spec, status);
  for (const auto& [key, value] : submission.metadata.labels) object.labels[key] = value;
  object.spec = std::move(spec);
  object.status = std::move(status);
  return object;
}

std::optional<http::Response> refused_by_nodes(const Call& call, const std::vector<Submission>& submissions) {
  for (const Submission& submission : submissions) {
    if (submission.kind != objects::Kind::node) continue;
    const Pointer node = call.context.objects.find(node_key(submission.metadata.name));
    if (!node || !call.caller.may_operate()) continue;  // planned_node() returns the error.
    const auto& wanted = submission.spec.as<objects::NodePatchSpec>();
    const bool has_pool = std::ranges::any_of(submissions, [&](const Submission& other) {
      return other.kind == objects::Kind::pool && other.metadata.name == wanted.pool;
    });
    if (!has_pool)
      if (auto refused = refused_pool(call, wanted.pool)) return refused;
    if (auto refused = refused_labels(call, *node, submission.metadata.labels, /*waits=*/false))
      return refused;
  }
  return std::nullopt;
}

http::Response start_node(const Call& call) {
  return kept_spec(call, [](objects::NodeSpec& spec) { spec.stopped = false; });
}
http::Response stop_node(const Call& call) {
  return kept_spec(call, [](objects::NodeSpec& spec) { spec.stopped = true; });
}

http::Response restart_node(const Call& call) {
  const auto query = parse_query(call.request.query, {"namespace", "force"});
  if (!query) return refuse(query.error());
  const auto node = changeable_node(call);
  if (!node) return refuse(node.error());
  if (query->contains("force") && query->at("force") != "false" && call.context.node_actions != nullptr)
    call.context.node_actions->end_slices(node->known->record.name);
  return kept_spec(call, [](objects::NodeSpec& spec) {
    spec.stopped = false;
    spec.restarting = true;
  });
}

http::Response drain_node(const Call& call) {
  return kept_spec(call, [&](objects::NodeSpec& spec) {
    if (spec.schedulable) cordon(call, spec);
    spec.draining = true;
  });
}

http::Response end_node_slices(const Call& call) {
  const auto node = changeable_node(call);
  if (!node) return refuse(node.error());
  if (refusal_of(*node->object).empty())
    return refuse(FailureKind::failed_precondition,
                  fmt::format("node {0} still grants slices; cordon it first with carve cordon {0}",
                              node->known->record.name));
  if (call.context.node_actions != nullptr) {
    call.context.node_actions->end_slices(node->known->record.name);
    call.context.node_actions->poll();
  }
  return shown_node(*node->object, *node->known);
}

}  // namespace carve::controller
