#include "kubernetes/coordinator/extender/messages.h"

#include <algorithm>
#include <charconv>

#include "kubernetes/api/json_walk.h"
#include "kubernetes/coordinator/extender/json_cursor.h"
#include "wire/api/json.h"

namespace carve::kubernetes::coordinator {
namespace {

using kubernetes::JsonLevel;

constexpr std::string_view prefix = "carve: ";  // Starts the messages in the scheduler's events.

bool is_same(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; };
  return std::ranges::equal(a, b, {}, lower, lower);
}

// Takes a value of the pod's metadata. `path` is relative to the metadata.
void take_meta_value(kubernetes::ObjectMeta& pod, std::span<const JsonLevel> path, const std::string& text) {
  if (path.size() == 2 && path[0].key == "annotations") pod.annotations[path[1].key] = text;
  if (path.size() != 1) return;
  if (path[0].key == "name") pod.name = text;
  if (path[0].key == "namespace") pod.name_space = text;
  if (path[0].key == "uid") pod.uid = text;
}

class MetaReader final : public kubernetes::JsonWalk {
 public:
  kubernetes::ObjectMeta out;

 private:
  void value(std::span<const JsonLevel> path, const std::string& text) override {
    take_meta_value(out, path, text);
  }
};

// The API server allows no characters in a name that JSON escapes, so names are written back as they were
// read.
bool is_node_name(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c > ' ' && c <= '~' && c != '\\'; });
}

std::string& append_quoted(std::string& out, std::string_view name) {
  return out.append("\"").append(name).append("\"");
}

class PreemptReader final : public kubernetes::JsonWalk {
 public:
  PreemptQuestion out;

 private:
  void value(std::span<const JsonLevel> path, const std::string& text) override {
    if (path.size() < 3) return;
    if (is_same(path[0].key, "pod") && path[1].key == "metadata")
      return take_meta_value(out.pod, path.subspan(2), text);
    if (!is_same(path[0].key, "nodenametometavictims")) return;
    Victims& victims = out.nodes[path[1].key];  // Adds every node: NumPDBViolations is always present.
    if (path.size() == 3 && is_same(path[2].key, "numpdbviolations"))
      std::from_chars(text.data(), text.data() + text.size(), victims.violations);
    if (path.size() == 5 && is_same(path[2].key, "pods") && path[3].is_list && is_same(path[4].key, "uid"))
      victims.uids.push_back(text);
  }
};

class BindReader final : public kubernetes::JsonWalk {
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

}  // namespace

Result<NodesQuestion, std::string> read_nodes_question(std::string_view json) {
  NodesQuestion out;
  std::string_view meta;
  JsonCursor at(json);
  const auto read_meta = [&](std::string_view key) {
    const auto text = at.value();
    if (text && key == "metadata") meta = *text;
    return text.has_value();
  };
  const auto read_name = [&] {
    const auto name = at.text();
    if (name) out.nodes.push_back(*name);
    return name && is_node_name(*name);
  };
  const bool is_read = at.members([&](std::string_view key) {
    if (is_same(key, "pod") && at.is_next('{')) return at.members(read_meta);
    if (is_same(key, "nodenames") && at.is_next('[')) return at.values(read_name);
    return at.value().has_value();
  });
  if (!is_read || !at.is_at_end())
    return tl::unexpected(fmt::format("not a request from a scheduler: cannot parse byte {}", at.position()));
  MetaReader reader;
  if (!meta.empty() && !reader.read(meta)) return tl::unexpected("the pod's metadata: " + reader.problem());
  if (reader.out.uid.empty()) return tl::unexpected(std::string("the request has no pod with a uid"));
  out.pod = std::move(reader.out);
  return out;
}

Result<PreemptQuestion, std::string> read_preempt_question(std::string_view json) {
  PreemptReader reader;
  if (!reader.read(json)) return tl::unexpected(reader.problem());
  if (reader.out.pod.uid.empty()) return tl::unexpected(std::string("the request has no pod with a uid"));
  return std::move(reader.out);
}

Result<BindQuestion, std::string> read_bind_question(std::string_view json) {
  BindReader reader;
  if (!reader.read(json)) return tl::unexpected(reader.problem());
  const BindQuestion& out = reader.out;
  if (out.pod.empty() || out.name_space.empty() || out.uid.empty() || out.node.empty())
    return tl::unexpected(std::string("the request must have a pod, a namespace, a uid and a node"));
  return std::move(reader.out);
}

std::string filter_answer(std::span<const std::string_view> nodes, std::span<const std::string_view> refusals,
                          std::span<const size_t> preemptible) {
  std::string passing, failing, lasting;  // Preemption may help only the failing nodes.
  for (size_t i = 0; i < nodes.size(); ++i) {
    const bool is_preemptible = !preemptible.empty() && preemptible.front() == i;
    if (is_preemptible) preemptible = preemptible.subspan(1);
    std::string& out = refusals[i].empty() ? passing : is_preemptible ? failing : lasting;
    append_quoted(out.empty() ? out : out.append(","), nodes[i]);
    if (!refusals[i].empty()) out.append(":\"").append(prefix).append(refusals[i]).append("\"");
  }
  return fmt::format(
      R"({{"NodeNames":[{}],"FailedNodes":{{{}}},"FailedAndUnresolvableNodes":{{{}}},"Error":""}})", passing,
      failing, lasting);
}

std::string filter_error(const std::string& message) {
  return fmt::format(R"({{"NodeNames":[],"Error":{}}})", api::quoted(std::string(prefix) + message));
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

std::string prioritize_answer(std::span<const std::string_view> nodes, std::span<const uint8_t> scores) {
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

}  // namespace carve::kubernetes::coordinator
