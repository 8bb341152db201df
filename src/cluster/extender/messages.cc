#include "cluster/extender/messages.h"

#include <algorithm>
#include <charconv>

#include "kube/json_walk.h"
#include "wire/api/json.h"

namespace carve::cluster {
namespace {

using kube::JsonLevel;

constexpr std::string_view prefix = "carve: ";  // Of what the scheduler's events show.

bool is_same(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; };
  return std::ranges::equal(a, b, {}, lower, lower);
}

// Takes what belongs to the pod's metadata; returns whether it did.
bool take_pod_value(kube::ObjectMeta& pod, std::span<const JsonLevel> path, const std::string& text) {
  if (path.size() < 3 || path[1].key != "metadata" || !is_same(path[0].key, "pod")) return false;
  path = path.subspan(2);
  if (path.size() == 2 && path[0].key == "annotations") pod.annotations[path[1].key] = text;
  if (path.size() != 1) return true;
  if (path[0].key == "name") pod.name = text;
  if (path[0].key == "namespace") pod.name_space = text;
  if (path[0].key == "uid") pod.uid = text;
  return true;
}

class NodesReader final : public kube::JsonWalk {
 public:
  NodesQuestion out;

 private:
  void value(std::span<const JsonLevel> path, const std::string& text) override {
    if (path.empty() || take_pod_value(out.pod, path, text)) return;
    if (path.size() == 2 && path[1].is_list && is_same(path[0].key, "nodenames")) out.nodes.push_back(text);
  }
};

class PreemptReader final : public kube::JsonWalk {
 public:
  PreemptQuestion out;

 private:
  void value(std::span<const JsonLevel> path, const std::string& text) override {
    if (path.empty() || take_pod_value(out.pod, path, text)) return;
    if (path.size() < 3 || !is_same(path[0].key, "nodenametometavictims")) return;
    Victims& victims = out.nodes[path[1].key];  // NumPDBViolations is always there, so every node is.
    if (path.size() == 3 && is_same(path[2].key, "numpdbviolations"))
      std::from_chars(text.data(), text.data() + text.size(), victims.violations);
    if (path.size() == 5 && is_same(path[2].key, "pods") && path[3].is_list && is_same(path[4].key, "uid"))
      victims.uids.push_back(text);
  }
};

class BindReader final : public kube::JsonWalk {
 public:
  BindQuestion out;

 private:
  void value(std::span<const JsonLevel> path, const std::string& text) override {
    if (path.size() != 1) return;
    const std::string& key = path[0].key;
    if (is_same(key, "podname")) out.pod = text;
    if (is_same(key, "podnamespace")) out.name_space = text;
    if (is_same(key, "poduid")) out.uid = text;
    if (is_same(key, "node")) out.node = text;
  }
};

// Names of nodes have no characters that JSON escapes; what has is no node's name.
void append_quoted(std::string& out, std::string_view text) {
  const bool is_plain =
      std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; });
  if (is_plain)
    out.append("\"").append(text).append("\"");
  else
    out += api::quoted(std::string(text));
}

}  // namespace

Result<NodesQuestion, std::string> read_nodes_question(std::string_view json) {
  NodesReader reader;
  if (!reader.read(json)) return tl::unexpected(reader.problem());
  if (reader.out.pod.uid.empty()) return tl::unexpected(std::string("the question has no pod with a uid"));
  return std::move(reader.out);
}

Result<PreemptQuestion, std::string> read_preempt_question(std::string_view json) {
  PreemptReader reader;
  if (!reader.read(json)) return tl::unexpected(reader.problem());
  if (reader.out.pod.uid.empty()) return tl::unexpected(std::string("the question has no pod with a uid"));
  return std::move(reader.out);
}

Result<BindQuestion, std::string> read_bind_question(std::string_view json) {
  BindReader reader;
  if (!reader.read(json)) return tl::unexpected(reader.problem());
  const BindQuestion& out = reader.out;
  if (out.pod.empty() || out.name_space.empty() || out.uid.empty() || out.node.empty())
    return tl::unexpected(std::string("the question has no pod, namespace, uid or node"));
  return std::move(reader.out);
}

std::string filter_answer(const std::vector<std::string>& nodes,
                          const std::vector<std::string_view>& refusals) {
  std::string passing, failing;
  for (size_t i = 0; i < nodes.size(); ++i) {
    std::string& out = refusals[i].empty() ? passing : failing;
    if (!out.empty()) out += ',';
    append_quoted(out, nodes[i]);
    if (!refusals[i].empty()) out.append(":\"").append(prefix).append(refusals[i]).append("\"");
  }
  return fmt::format(
      R"({{"NodeNames":[{}],"FailedNodes":{{}},"FailedAndUnresolvableNodes":{{{}}},"Error":""}})", passing,
      failing);
}

std::string filter_error(const std::string& sentence) {
  return fmt::format(R"({{"NodeNames":[],"Error":{}}})", api::quoted(std::string(prefix) + sentence));
}

std::string preempt_answer(const std::map<std::string, Victims>& nodes) {
  std::string out;
  for (const auto& [node, victims] : nodes) {
    std::string pods;
    for (const std::string& uid : victims.uids)
      pods += fmt::format("{}{{\"UID\":{}}}", pods.empty() ? "" : ",", api::quoted(uid));
    out += fmt::format(R"({}{}:{{"Pods":[{}],"NumPDBViolations":{}}})", out.empty() ? "" : ",",
                       api::quoted(node), pods, victims.violations);
  }
  return "{\"NodeNameToMetaVictims\":{" + out + "}}";
}

std::string prioritize_answer(const std::vector<std::string>& nodes, const std::vector<uint8_t>& scores) {
  std::string out = "[";
  for (size_t i = 0; i < nodes.size(); ++i) {
    out += i == 0 ? "{\"Host\":" : ",{\"Host\":";
    append_quoted(out, nodes[i]);
    out.append(",\"Score\":").append(std::to_string(scores[i])).append("}");
  }
  return out + "]";
}

std::string bind_answer(const std::string& error) {
  return fmt::format(R"({{"Error":{}}})", api::quoted(error.empty() ? error : std::string(prefix) + error));
}

}  // namespace carve::cluster
