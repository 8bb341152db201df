#include "replay/cluster_trace.h"

#include <algorithm>
#include <unordered_map>

#include "replay/csv.h"

namespace carve::replay {
namespace {

constexpr uint64_t trace_nodes = 1'000'000;
constexpr uint64_t trace_pods = 10'000'000;
constexpr uint64_t trace_cpu = 100'000'000;    // Thousandths of a core.
constexpr uint64_t trace_memory = 1ull << 30;  // MiB: a pebibyte.
constexpr uint64_t trace_seconds = 1ull << 40;

bool is_word(std::string_view name) {
  return !name.empty() && name.size() <= 253 &&
         std::ranges::all_of(name, [](char c) { return c > ' ' && c <= '~'; });
}

// Checks that names are unique. The error names the row in which the name was first used.
class UniqueNames {
 public:
  Outcome<void> add(const Csv& csv, std::string_view column, std::string_view name) {
    if (!is_word(name)) return csv.wrong("{}: '{}' is not a valid name", column, name.substr(0, 40));
    const auto [entry, fresh] = lines_.try_emplace(std::string(name), lines_.size() + 1);
    if (!fresh) return csv.wrong("{}: '{}' is already the name of row {}", column, name, entry->second);
    return {};
  }

 private:
  std::unordered_map<std::string, size_t> lines_;
};

}  // namespace

std::vector<std::string> split_models(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const size_t bar = std::min(text.find('|'), text.size());
    out.emplace_back(text.substr(0, bar));
    text.remove_prefix(std::min(bar + 1, text.size()));
  }
  return out;
}

uint64_t Cluster::devices() const {
  uint64_t sum = 0;
  for (const Node& n : nodes) sum += n.devices;
  return sum;
}

Outcome<Cluster> read_cluster(const std::string& path) {
  enum { sn, cpu, memory, gpu, model };
  auto csv = Csv::open(path, {"sn", "cpu_milli", "memory_mib", "gpu", "model"}, 5);
  if (!csv) return tl::unexpected(csv.error());
  Cluster cluster;
  UniqueNames names;
  std::vector<std::string> models;
  for (;;) {
    const auto more = csv->next();
    if (!more) return tl::unexpected(more.error());
    if (!*more) break;
    if (cluster.nodes.size() == trace_nodes)
      return csv->wrong("the file has more than {} nodes", trace_nodes);
    if (const auto fresh = names.add(*csv, "sn", csv->field(sn)); !fresh)
      return tl::unexpected(fresh.error());
    const auto cpus = csv->number(cpu, 0, trace_cpu);
    if (!cpus) return tl::unexpected(cpus.error());
    const auto mib = csv->number(memory, 0, trace_memory);
    if (!mib) return tl::unexpected(mib.error());
    const auto devices = csv->number(gpu, 0, place::max_node_devices);
    if (!devices) return tl::unexpected(devices.error());
    const std::string_view m = csv->field(model);
    if (*devices != 0 && !is_word(m)) return csv->wrong("model: '{}' is not a valid name", m.substr(0, 40));
    if (std::ranges::find(models, m) == models.end()) {
      if (models.size() == place::max_models)
        return csv->wrong("the nodes have more than {} models", place::max_models);
      models.emplace_back(m);
    }
    cluster.nodes.push_back({std::string(csv->field(sn)), static_cast<uint32_t>(*cpus), *mib,
                             static_cast<unsigned>(*devices), std::string(m)});
  }
  if (cluster.devices() == 0) return csv->wrong("no node has a device");
  return cluster;
}

Outcome<Trace> read_trace(const std::string& path, const Cluster& cluster) {
  enum { name, cpu, memory, num, milli, spec, created, deleted };
  auto csv = Csv::open(path,
                       {"name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec",
                        "creation_time", "deletion_time"},
                       5);
  if (!csv) return tl::unexpected(csv.error());
  std::unordered_map<std::string, unsigned> largest;  // Devices of the largest node, by model.
  unsigned largest_of_all = 0;
  for (const Node& n : cluster.nodes) {
    largest[n.model] = std::max(largest[n.model], n.devices);
    largest_of_all = std::max(largest_of_all, n.devices);
  }

  Trace trace;
  UniqueNames names;
  for (;;) {
    const auto more = csv->next();
    if (!more) return tl::unexpected(more.error());
    if (!*more) break;
    if (trace.pods.size() == trace_pods) return csv->wrong("the file has more than {} pods", trace_pods);
    if (const auto fresh = names.add(*csv, "name", csv->field(name)); !fresh)
      return tl::unexpected(fresh.error());
    const auto cpus = csv->number(cpu, 0, trace_cpu);
    if (!cpus) return tl::unexpected(cpus.error());
    const auto mib = csv->number(memory, 0, trace_memory);
    if (!mib) return tl::unexpected(mib.error());
    const auto devices = csv->number(num, 0, 1000);
    if (!devices) return tl::unexpected(devices.error());
    if (*devices > largest_of_all)
      return csv->wrong("num_gpu: {} is more than the {} of the largest node", *devices, largest_of_all);
    const auto part = csv->number(milli, *devices == 0 ? 0 : 1, *devices == 0 ? 0 : 1000);
    if (!part) return tl::unexpected(part.error());
    Pod pod{std::string(csv->field(name)),   static_cast<uint32_t>(*cpus), *mib,
            static_cast<unsigned>(*devices), static_cast<unsigned>(*part), split_models(csv->field(spec))};
    unsigned largest_allowed = 0;
    for (const std::string& m : pod.models) {
      const auto known = largest.find(m);
      if (known == largest.end())
        return csv->wrong("gpu_spec: no node has devices of model '{}'", m.substr(0, 40));
      largest_allowed = std::max(largest_allowed, known->second);
    }
    if (!pod.models.empty() && pod.devices > largest_allowed)
      return csv->wrong("num_gpu: {} is more than the {} of the largest node of the allowed models",
                        pod.devices, largest_allowed);
    if (!csv->field(created).empty() || !csv->field(deleted).empty()) {
      const auto from = csv->number(created, 0, trace_seconds);
      if (!from) return tl::unexpected(from.error());
      const auto to = csv->number(deleted, 0, trace_seconds);
      if (!to) return tl::unexpected(to.error());
      if (*to < *from) return csv->wrong("deletion_time: {} is before creation_time {}", *to, *from);
      pod.created = *from, pod.deleted = *to;
    }
    trace.pods.push_back(std::move(pod));
  }
  if (trace.pods.empty()) return csv->wrong("the file has no pod");
  std::ranges::sort(trace.pods, {}, &Pod::name);

  std::string_view base = path;
  if (const size_t slash = base.rfind('/'); slash != base.npos) base.remove_prefix(slash + 1);
  if (base.ends_with(".csv")) base.remove_suffix(4);
  constexpr std::string_view prefix = "openb_pod_list_";
  if (base.starts_with(prefix)) base.remove_prefix(prefix.size());
  trace.name = base;
  return trace;
}

place::RequestShape shape_of(const Pod& pod, const place::Fleet& fleet) {
  place::RequestShape shape;
  shape.devices = static_cast<uint8_t>(pod.devices);
  shape.share = {pod.milli * 10};
  // A trace has no device memory, so nothing is isolated, and the number of slices is not limited.
  shape.isolated = pod.device_memory_mib != 0;
  shape.memory = {pod.device_memory_mib << 20};
  shape.cpu_milli = pod.cpu_milli;
  shape.host_memory = {pod.memory_mib << 20};
  if (!pod.models.empty()) {
    shape.models = 0;
    for (const std::string& m : pod.models)
      if (const auto bit = fleet.known_model(m)) shape.models |= uint64_t{1} << *bit;
  }
  return shape;
}

}  // namespace carve::replay
