#include "replay/snapshot.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <span>
#include <unordered_map>

#include "place/rules.h"
#include "replay/json_lines.h"

namespace carve::replay {
namespace {

using Kind = Json::Kind;

constexpr size_t max_file_bytes = size_t{256} << 20;
constexpr size_t max_nodes = 1'000'000;
constexpr size_t max_placed_slices = 10'000'000;
constexpr uint64_t max_cpu_milli = 100'000'000;           // Thousandths of a core.
constexpr uint64_t max_memory_bytes = uint64_t{1} << 50;  // A pebibyte.
// The limits of a node's slices (docs/kubernetes-node.md). A slice is moved only among nodes of the same
// mode.
constexpr std::string_view modes[] = {"memory-and-compute", "memory", "none", "exclusive"};
constexpr std::string_view mode_without_isolation = "none";

// Keeps the first error and ignores all later ones.
class Reader {
 public:
  explicit Reader(const std::string& name) : name_(name) {}

  bool good() const { return error.empty(); }
  void wrong(const Json& at, const std::string& field, const std::string& why) {
    if (good()) error = fmt::format("{}:{}: {}: {}", name_, at.line, field, why);
  }

  // Checks that the value is an object with these fields and no others.
  void object(const Json& at, const std::string& path, std::initializer_list<std::string_view> known) {
    if (at.kind != Kind::object) return wrong(at, path, "is not an object");
    for (const auto& [name, value] : at.members)
      if (std::ranges::find(known, name) == known.end())
        return wrong(
            value, path,
            fmt::format("unknown field '{}'; the fields are {}", name.substr(0, 40), fmt::join(known, ", ")));
  }
  static const Json* field(const Json& at, std::string_view name) {
    const auto found = std::ranges::find(at.members, name, &JsonMember::name);
    return found == at.members.end() ? nullptr : &found->value;
  }
  const Json* needed(const Json& at, const std::string& path, std::string_view name) {
    const Json* found = field(at, name);
    if (found == nullptr) wrong(at, path, fmt::format("'{}' is missing", name));
    return found;
  }
  uint64_t number(const Json* at, const std::string& path, uint64_t most, uint64_t otherwise = 0) {
    if (at == nullptr) return otherwise;
    if (at->kind == Kind::number && at->number <= most) return at->number;
    wrong(*at, path, fmt::format("{} must be a whole number from 0 to {}", shown(*at), most));
    return otherwise;
  }
  bool truth(const Json* at, const std::string& path, bool otherwise) {
    if (at == nullptr) return otherwise;
    if (at->kind != Kind::boolean) wrong(*at, path, "is neither true nor false");
    return at->number != 0;
  }
  // Returns the position of the word in the list, or 0 if it is not in the list.
  size_t one_of(const Json& at, const std::string& path, std::span<const std::string_view> words) {
    const auto found = std::ranges::find(words, at.kind == Kind::text ? std::string_view(at.text) : "");
    if (found != words.end()) return static_cast<size_t>(found - words.begin());
    wrong(at, path, fmt::format("{} must be one of {}", shown(at), fmt::join(words, ", ")));
    return 0;
  }
  std::string word(const Json* at, const std::string& path, bool may_be_empty) {
    if (at == nullptr) return {};
    const bool good_word = at->kind == Kind::text && at->text.size() <= max_label_bytes &&
                           (may_be_empty || !at->text.empty()) &&
                           std::ranges::all_of(at->text, [](char c) { return c >= ' ' && c <= '~'; });
    if (!good_word)
      wrong(*at, path,
            fmt::format("{} is not a valid name; use at most {} printable ASCII characters", shown(*at),
                        max_label_bytes));
    return good_word ? at->text : std::string();
  }
  const std::vector<Json>& list(const Json* at, const std::string& path, size_t most) {
    static const std::vector<Json> none;
    if (at == nullptr) return none;
    if (at->kind != Kind::list) return wrong(*at, path, "is not a list"), none;
    if (at->items.size() > most) return wrong(*at, path, fmt::format("has more than {} items", most)), none;
    return at->items;
  }

  std::string error;

 private:
  static std::string shown(const Json& at) {
    switch (at.kind) {
      case Kind::number: return std::to_string(at.number);
      case Kind::text: return fmt::format("'{}'", at.text.substr(0, 40));
      case Kind::other: return at.text.substr(0, 40);
      default: return "the value";
    }
  }
  std::string name_;
};

Snapshot::Node read_node(Reader& r, const Json& at, const std::string& path) {
  Snapshot::Node node;
  r.object(at, path,
           {"name", "model", "mode", "policy", "cpu_milli", "host_memory_bytes", "up", "devices", "links"});
  if (!r.good()) return node;
  node.name = r.word(r.needed(at, path, "name"), path + ".name", false);
  node.model = r.word(r.needed(at, path, "model"), path + ".model", false);
  node.state.cpu_free = static_cast<uint32_t>(
      r.number(Reader::field(at, "cpu_milli"), path + ".cpu_milli", max_cpu_milli, max_cpu_milli));
  node.state.host_free = {r.number(Reader::field(at, "host_memory_bytes"), path + ".host_memory_bytes",
                                   max_memory_bytes, max_memory_bytes)};
  if (const Json* const mode = Reader::field(at, "mode"); mode != nullptr) {
    const size_t number = r.one_of(*mode, path + ".mode", modes);
    node.state.kind = static_cast<uint8_t>(number);
    node.state.isolates = modes[number] != mode_without_isolation;
    node.has_mode = true;
  }
  if (const Json* const policy = Reader::field(at, "policy"); policy != nullptr)
    node.state.policy = static_cast<uint8_t>(r.one_of(*policy, path + ".policy", Words<Policy>::words));
  node.state.up = r.truth(Reader::field(at, "up"), path + ".up", true);
  for (const Json& device :
       r.list(r.needed(at, path, "devices"), path + ".devices", place::max_node_devices)) {
    const std::string here = fmt::format("{}.devices[{}]", path, node.devices.size());
    r.object(device, here, {"uuid", "memory_bytes", "trouble"});
    if (!r.good()) return node;
    node.uuids.push_back(r.word(Reader::field(device, "uuid"), here + ".uuid", true));
    place::DeviceState state;
    state.usable = state.free = {
        r.number(r.needed(device, here, "memory_bytes"), here + ".memory_bytes", max_memory_bytes)};
    state.sick = !r.word(Reader::field(device, "trouble"), here + ".trouble", true).empty();
    node.devices.push_back(state);
  }
  if (const Json* links = Reader::field(at, "links"); links != nullptr && r.good()) {
    // The rows of nvidia-smi's matrix, with its heading added.
    std::string matrix = "\t";
    for (size_t i = 0; i < node.devices.size(); ++i) matrix += fmt::format("GPU{} ", i);
    size_t row = 0;
    for (const Json& line : r.list(links, path + ".links", place::max_node_devices)) {
      if (line.kind != Kind::text || line.text.size() > 1024 ||
          line.text.find_first_of("\n\r") != std::string::npos)
        r.wrong(line, fmt::format("{}.links[{}]", path, row),
                "is not a row of links; an example is \"X NV12 SYS\"");
      matrix += fmt::format("\nGPU{} {}", row++, line.text);
    }
    auto read = place::Topology::read(matrix, static_cast<unsigned>(node.devices.size()));
    if (!read)
      r.wrong(*links, path + ".links", read.error().message);
    else
      node.links = *read;
  }
  return node;
}

// Checks a request of this size on these devices, together with the entries above it in the document. Returns
// the message of the first violated rule.
std::optional<std::string> refusal(const Snapshot::Node& node, const place::RequestShape& shape,
                                   place::DeviceSet set) {
  if (shape.cpu_milli > node.state.cpu_free)
    return fmt::format("holds {}m of CPU, but the entries above leave only {}m", shape.cpu_milli,
                       node.state.cpu_free);
  if (shape.host_memory > node.state.host_free)
    return fmt::format("holds {} of host memory, but the entries above leave only {}",
                       text(shape.host_memory).c_str(), text(node.state.host_free).c_str());
  for (; set != 0; set &= set - 1) {
    const auto i = static_cast<unsigned>(std::countr_zero(set));
    const place::DeviceState& c = node.devices[i];
    const std::string where = fmt::format("device {}: ", i);
    if (c.exclusive) return where + "an entry above is exclusive";
    if (shape.exclusive && c.slices != 0)
      return where +
             fmt::format("the slice is exclusive, but {} of the entries above use the device", c.slices);
    if (need(shape, c) > c.free)
      return where + fmt::format("holds {}, but the entries above leave only {} of {}",
                                 text(need(shape, c)).c_str(), text(c.free).c_str(), text(c.usable).c_str());
    if (needed_share(shape) > c.free_share)
      return where + fmt::format("holds {} of its compute, but the entries above leave only {}",
                                 text(needed_share(shape)).c_str(), text(c.free_share).c_str());
    if (shape.isolated && !shape.exclusive && c.isolated >= max_isolated_slices)
      return where + fmt::format("more than {} isolated slices", max_isolated_slices);
    if (c.slices == UINT8_MAX) return where + fmt::format("more than {} slices", UINT8_MAX);
  }
  return std::nullopt;
}

// Takes the slice's resources from the node, so that the next entry is checked against the remainder.
void take(Snapshot::Node& node, const place::RequestShape& shape, place::DeviceSet set) {
  node.state.cpu_free -= shape.cpu_milli;
  node.state.host_free.count -= shape.host_memory.count;
  for (; set != 0; set &= set - 1) {
    place::DeviceState& c = node.devices[static_cast<unsigned>(std::countr_zero(set))];
    c.free.count -= need(shape, c).count;
    c.free_share.basis_points -= needed_share(shape).basis_points;
    ++c.slices;
    c.isolated = static_cast<uint8_t>(c.isolated + shape.isolated);
    c.exclusive = shape.exclusive;
  }
}

using Names = std::unordered_map<std::string, uint32_t>;

Snapshot::PlacedSlice read_held(Reader& r, const Json& at, const std::string& path, const Names& nodes,
                                std::vector<Snapshot::Node>& rest) {
  Snapshot::PlacedSlice held;
  r.object(at, path,
           {"name", "node", "devices", "memory_bytes", "share_bp", "exclusive", "isolated", "cpu_milli",
            "host_memory_bytes", "application", "models"});
  if (!r.good()) return held;
  held.name = r.word(r.needed(at, path, "name"), path + ".name", false);
  held.application = r.word(Reader::field(at, "application"), path + ".application", true);
  for (const Json& model : r.list(Reader::field(at, "models"), path + ".models", max_allowed_models))
    held.models.push_back(r.word(&model, path + ".models", false));
  const std::string on = r.word(r.needed(at, path, "node"), path + ".node", false);
  if (!r.good()) return held;
  const auto node = nodes.find(on);
  if (node == nodes.end())
    return r.wrong(*Reader::field(at, "node"), path + ".node", fmt::format("there is no node '{}'", on)),
           held;
  held.assignment.node = node->second;
  Snapshot::Node& there = rest[node->second];
  place::RequestShape& shape = held.shape;
  for (const Json& device :
       r.list(Reader::field(at, "devices"), path + ".devices", place::max_node_devices)) {
    const auto uuid =
        device.kind == Kind::text ? std::ranges::find(there.uuids, device.text) : there.uuids.end();
    if (device.kind == Kind::text && (device.text.empty() || uuid == there.uuids.end()))
      return r.wrong(device, path + ".devices",
                     fmt::format("node {} has no device '{}'", on, device.text.substr(0, 40))),
             held;
    const uint64_t i = device.kind == Kind::text
                           ? static_cast<uint64_t>(uuid - there.uuids.begin())
                           : r.number(&device, path + ".devices", place::max_node_devices);
    if (!r.good()) return held;
    if (i >= there.devices.size())
      return r.wrong(device, path + ".devices",
                     fmt::format("node {} has {} devices, numbered from 0; {} is not one of them", on,
                                 there.devices.size(), i)),
             held;
    const auto bit = place::DeviceSet{1} << i;
    if ((held.assignment.devices & bit) != 0)
      return r.wrong(device, path + ".devices", fmt::format("device {} occurs twice", i)), held;
    held.assignment.devices |= bit;
  }
  shape.devices = static_cast<uint8_t>(std::popcount(held.assignment.devices));
  shape.policy = there.state.policy;
  if (there.has_mode) shape.kinds = place::NodeKinds{1} << there.state.kind;
  shape.memory = {r.number(Reader::field(at, "memory_bytes"), path + ".memory_bytes", max_memory_bytes)};
  shape.share = {static_cast<uint32_t>(
      r.number(Reader::field(at, "share_bp"), path + ".share_bp", whole_device.basis_points))};
  shape.exclusive = r.truth(Reader::field(at, "exclusive"), path + ".exclusive", false);
  shape.isolated = r.truth(Reader::field(at, "isolated"), path + ".isolated", true);
  shape.cpu_milli =
      static_cast<uint32_t>(r.number(Reader::field(at, "cpu_milli"), path + ".cpu_milli", max_cpu_milli));
  shape.host_memory = {
      r.number(Reader::field(at, "host_memory_bytes"), path + ".host_memory_bytes", max_memory_bytes)};
  if (!r.good()) return held;
  if (shape.exclusive && (shape.memory.count != 0 || shape.share.basis_points != 0))
    return r.wrong(at, path + ".exclusive",
                   "an exclusive slice has whole devices; omit memory_bytes and share_bp"),
           held;
  if (const auto why = refusal(there, shape, held.assignment.devices))
    return r.wrong(at, path, fmt::format("'{}' on node {}, {}", held.name, on, *why)), held;
  bool first = true;
  for (place::DeviceSet set = held.assignment.devices; set != 0; set &= set - 1, first = false) {
    const Bytes needed = need(shape, there.devices[static_cast<unsigned>(std::countr_zero(set))]);
    held.assignment.memory = first ? needed : std::min(held.assignment.memory, needed);
  }
  take(there, shape, held.assignment.devices);
  return held;
}

}  // namespace

Outcome<Snapshot> parse_snapshot(std::string_view text, const std::string& name) {
  const auto json = parse_json(text, name);
  if (!json) return tl::unexpected(json.error());
  Reader r(name);
  Snapshot out;
  r.object(*json, "the document", {"nodes", "held"});
  Names nodes;
  Names held;
  std::vector<std::string> models;
  if (r.good())
    for (const Json& at : r.list(r.needed(*json, "the document", "nodes"), "nodes", max_nodes)) {
      const std::string path = fmt::format("nodes[{}]", out.nodes.size());
      Snapshot::Node node = read_node(r, at, path);
      if (!r.good()) break;
      const auto [entry, fresh] = nodes.try_emplace(node.name, static_cast<uint32_t>(out.nodes.size()));
      if (!fresh)
        r.wrong(at, path + ".name",
                fmt::format("'{}' is already the name of nodes[{}]", node.name, entry->second));
      if (std::ranges::find(models, node.model) == models.end()) models.push_back(node.model);
      if (models.size() > place::max_models)
        r.wrong(at, path + ".model", fmt::format("the nodes have more than {} models", place::max_models));
      out.nodes.push_back(std::move(node));
    }
  std::vector<Snapshot::Node> rest = out.nodes;
  if (r.good())
    for (const Json& at : r.list(Reader::field(*json, "held"), "held", max_placed_slices)) {
      const std::string path = fmt::format("held[{}]", out.held.size());
      Snapshot::PlacedSlice one = read_held(r, at, path, nodes, rest);
      if (!r.good()) break;
      const auto [entry, fresh] = held.try_emplace(one.name, static_cast<uint32_t>(out.held.size()));
      if (!fresh)
        r.wrong(at, path + ".name",
                fmt::format("'{}' is already the name of held[{}]", one.name, entry->second));
      out.held.push_back(std::move(one));
    }
  if (!r.good()) return failure(FailureKind::invalid_argument, "{}", r.error);
  if (out.nodes.empty()) return failure(FailureKind::invalid_argument, "{}: has no node", name);
  return out;
}

Outcome<Snapshot> read_snapshot(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "re"), std::fclose);
  if (!file)
    return failure(FailureKind::invalid_argument, "{}: cannot be opened: {}", path, std::strerror(errno));
  std::string text;
  for (size_t got = 1; got != 0;) {
    const size_t before = text.size();
    if (before > max_file_bytes)
      return failure(FailureKind::invalid_argument, "{}: is larger than {} MiB", path, max_file_bytes >> 20);
    text.resize(before + (1 << 16));
    got = std::fread(text.data() + before, 1, 1 << 16, file.get());
    text.resize(before + got);
  }
  if (std::ferror(file.get()) != 0)
    return failure(FailureKind::invalid_argument, "{}: cannot be read: {}", path, std::strerror(errno));
  return parse_snapshot(text, path);
}

Scene::Scene(const Snapshot& snapshot, Strategy strategy) : engine(strategy) {
  place::Fleet& fleet = engine.fleet();
  for (const Snapshot::Node& node : snapshot.nodes) {
    place::NodeState state = node.state;
    state.model = static_cast<uint8_t>(*fleet.model(node.model));
    const uint32_t n = fleet.add(state, node.devices);
    if (node.links) fleet.set_topology(n, *node.links);
  }
  place::ArrivalCounts arrivals(UINT64_MAX);
  for (const Snapshot::PlacedSlice& held : snapshot.held) {
    place::RequestShape shape = held.shape;
    shape.models = held.models.empty() ? place::Models{1} << fleet.node(held.assignment.node).model : 0;
    for (const std::string& m : held.models)
      if (const auto bit = fleet.known_model(m)) shape.models |= place::Models{1} << *bit;
    arrivals.count(shape);
    standing.push_back({engine.request_class(shape), held.assignment, engine.application(held.application)});
    engine.take(standing.back().request_class, held.assignment, standing.back().application);
  }
  if (engine.uses_workload_model()) engine.set_workload_model(arrivals.workload());
}

}  // namespace carve::replay
