// Reads facts from YAML. The range of every number is checked here, so that the libraries can trust the file
// that they map.
#include "sim/tool/profile.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "abi/nvml.h"

namespace carve::sim {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const std::string& message) { throw Refused(message); }

uint64_t number(const YAML::Node& node, const std::string& what, uint64_t low, uint64_t high) {
  const std::string text = node.as<std::string>();
  uint64_t value = 0;
  const bool hex = text.starts_with("0x");
  const char *begin = text.data() + (hex ? 2 : 0), *end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(begin, end, value, hex ? 16 : 10);
  if (error != std::errc() || stop != end || begin == end)
    refuse(what + ": '" + text + "' is not a whole number");
  if (value < low || value > high)
    refuse(what + ": " + text + " is not between " + std::to_string(low) + " and " + std::to_string(high));
  return value;
}

uint64_t bytes(const YAML::Node& node, const std::string& what) {
  const std::string text = node.as<std::string>();
  for (const auto& [unit, factor] : {std::pair{"KiB", 1ull << 10}, {"MiB", 1ull << 20}, {"GiB", 1ull << 30}})
    if (text.ends_with(unit))
      return number(YAML::Node(text.substr(0, text.size() - 3)), what, 0, (1ull << 44) / factor) * factor;
  refuse(what + ": '" + text + "' is not a size; write a size such as 23028MiB");
}

// Reads the keys of one profile that are present; absent values are unchanged.
struct Reader {
  const YAML::Node& y;
  const std::string& where;

  std::string at(const std::string& key) const { return where + ", " + key; }
  void text(const char* key, char* out, size_t room) const {
    if (!y[key]) return;
    const std::string s = y[key].as<std::string>();
    if (s.size() >= room) refuse(at(key) + ": longer than " + std::to_string(room - 1) + " bytes");
    std::copy(s.begin(), s.end(), out);
    out[s.size()] = 0;
  }
  template <class T>
  void number(const YAML::Node& node, const char* key, T& out, uint64_t low, uint64_t high) const {
    if (node && node[key]) out = static_cast<T>(sim::number(node[key], at(key), low, high));
  }
  template <class T>
  void size(const YAML::Node& node, const char* key, T& out) const {
    if (node && node[key]) out = static_cast<T>(bytes(node[key], at(key)));
  }
};

void apply_model(const Reader& r, Facts& f) {
  const YAML::Node& y = r.y;
  r.text("name", f.name, sizeof f.name);
  if (y["architecture"]) {
    static const std::map<std::string, unsigned> known = {
        {"volta", NVML_DEVICE_ARCH_VOLTA},   {"turing", NVML_DEVICE_ARCH_TURING},
        {"ampere", NVML_DEVICE_ARCH_AMPERE}, {"ada", NVML_DEVICE_ARCH_ADA},
        {"hopper", NVML_DEVICE_ARCH_HOPPER}, {"blackwell", NVML_DEVICE_ARCH_BLACKWELL}};
    const auto found = known.find(y["architecture"].as<std::string>());
    if (found == known.end())
      refuse(r.at("architecture") + ": must be volta, turing, ampere, ada, hopper or blackwell");
    f.architecture = found->second;
  }
  if (y["compute_capability"]) {
    const std::string s = y["compute_capability"].as<std::string>();
    if (s.size() < 3 || s[s.size() - 2] != '.')
      refuse(r.at("compute_capability") + ": must be a version, for example 8.6");
    f.cc_major = static_cast<uint32_t>(
        number(YAML::Node(s.substr(0, s.size() - 2)), r.at("compute_capability"), 1, 99));
    f.cc_minor = static_cast<uint32_t>(s.back() - '0');
  }
}

// Applies the memory sizes and the number of multiprocessors.
void apply_sizes(const Reader& r, Facts& f) {
  const YAML::Node& y = r.y;
  r.number(y, "pci_id", f.pci_device_id, 0, 0xffff);
  const YAML::Node memory = y["memory"];
  r.size(memory, "native", f.native_bytes);
  r.size(memory, "reserved", f.reserved_bytes);
  r.size(memory, "context", f.context_bytes);
  r.size(memory, "unlisted", f.unlisted_bytes);
  r.size(memory, "managed_step", f.managed_step_bytes);
  r.size(memory, "bar1", f.bar1_bytes);
  r.number(y, "multiprocessors", f.multiprocessors, 1, 1024);
  r.number(y, "cores_per_multiprocessor", f.cores_per_multiprocessor, 1, 1024);
  r.number(y, "threads_per_multiprocessor", f.threads_per_multiprocessor, 1024, 4096);
  r.number(y, "blocks_per_multiprocessor", f.blocks_per_multiprocessor, 1, 64);
  const YAML::Node shared = y["shared"];
  r.size(shared, "per_multiprocessor", f.shared_per_multiprocessor);
  r.size(shared, "per_block", f.shared_per_block);
  r.size(shared, "per_block_optin", f.shared_per_block_optin);
  r.size(shared, "reserved_per_block", f.shared_reserved_per_block);
}

// Applies clocks, power, links, bandwidths and the time slices.
void apply_speeds(const Reader& r, Facts& f) {
  const YAML::Node& y = r.y;
  uint32_t mhz = f.clock_khz / 1000, memory_mhz = f.memory_clock_khz / 1000;
  r.number(y, "clock_mhz", mhz, 1, 10000);
  r.number(y, "memory_clock_mhz", memory_mhz, 1, 20000);
  f.clock_khz = mhz * 1000;
  f.memory_clock_khz = memory_mhz * 1000;
  r.number(y, "memory_bus_bits", f.memory_bus_bits, 8, 16384);
  r.size(y, "l2", f.l2_bytes);
  uint32_t idle_w = f.power_idle_mw / 1000, limit_w = f.power_limit_mw / 1000;
  r.number(y["power"], "idle_w", idle_w, 0, 2000);
  r.number(y["power"], "limit_w", limit_w, 1, 5000);
  f.power_idle_mw = idle_w * 1000;
  f.power_limit_mw = limit_w * 1000;
  r.number(y["temperature"], "idle_c", f.temperature_idle_c, 0, 120);
  r.number(y["temperature"], "busy_c", f.temperature_busy_c, 0, 120);
  if (y["ecc"]) f.ecc = y["ecc"].as<bool>();
  r.number(y["pcie"], "generation", f.pcie_generation, 1, 7);
  r.number(y["pcie"], "width", f.pcie_width, 1, 32);
  r.number(y, "nvlinks", f.nvlinks, 0, NVML_NVLINK_MAX_LINKS);
  const YAML::Node bandwidth = y["bandwidth"];
  r.number(bandwidth, "to_device_mbps", f.to_device_mbps, 1, 100'000'000);
  r.number(bandwidth, "to_host_mbps", f.to_host_mbps, 1, 100'000'000);
  r.number(bandwidth, "on_device_mbps", f.on_device_mbps, 1, 100'000'000);
  const YAML::Node schedule = y["schedule"];
  r.number(schedule, "slice_ns", f.slice_ns, 1000, 1'000'000'000);
  r.number(schedule, "switch_ns", f.switch_ns, 0, 1'000'000'000);
  r.number(schedule, "launch_ns", f.launch_ns, 0, 1'000'000'000);
  r.number(schedule, "wave_ns", f.wave_ns, 0, 1'000'000'000);
  r.number(schedule, "copy_latency_ns", f.copy_latency_ns, 0, 1'000'000'000);
}

void apply(const YAML::Node& y, Facts& f, const std::string& where) {
  const Reader r{y, where};
  apply_model(r, f);
  apply_sizes(r, f);
  apply_speeds(r, f);
  if (f.reserved_bytes >= f.native_bytes || f.native_bytes % MiB || f.reserved_bytes % MiB)
    refuse(r.at("memory") + ": native must be larger than reserved, and both must be whole MiB");
  if (f.context_bytes > f.native_bytes - f.reserved_bytes)
    refuse(r.at("memory") + ": context must not exceed the usable memory");
  if (f.unlisted_bytes > f.context_bytes) refuse(r.at("memory") + ": unlisted must not exceed context");
  if (!f.name[0] || !f.multiprocessors || !f.cc_major || !f.architecture)
    refuse(where + ": name, architecture, compute_capability and multiprocessors are required");
}

Facts defaults() {
  Facts f = {};
  f.brand = NVML_BRAND_NVIDIA;
  f.numa_node = 0;
  f.cores_per_multiprocessor = 128;
  f.threads_per_multiprocessor = 2048;
  f.blocks_per_multiprocessor = 32;
  f.registers_per_multiprocessor = 65536;
  f.shared_per_multiprocessor = 100 << 10;
  f.shared_per_block = 48 << 10;
  f.shared_per_block_optin = 99 << 10;
  f.constant_bytes = 64 << 10;
  f.pci_subsystem_id = 0x10de;
  f.slice_ns = 2'000'000;
  f.switch_ns = 100'000;
  f.launch_ns = 2'000;
  f.wave_ns = 8'000;
  f.copy_latency_ns = 6'000;
  f.to_device_mbps = 12'000;
  f.to_host_mbps = 12'000;
  f.on_device_mbps = 200'000;
  std::fill(std::begin(f.link), std::end(f.link), uint8_t{0xff});
  return f;
}

YAML::Node load(const fs::path& path) {
  try {
    return YAML::LoadFile(path);
  } catch (const YAML::Exception& e) {
    refuse(path.string() + ": " + e.what());
  }
}

// "a10x2" means two a10, but "a100-80" is one device of that name: the longest profile name that matches
// wins.
void add(Plan& plan, const std::string& word) {
  const auto names = profile_names();
  std::string name = word;
  uint64_t count = 1;
  const auto known = [&](const std::string& n) {
    return std::find(names.begin(), names.end(), n) != names.end();
  };
  if (const size_t x = word.rfind('x'); !known(word) && x != std::string::npos) {
    name = word.substr(0, x);
    const std::string digits = word.substr(x + 1);
    if (digits.empty() || digits.find_first_not_of("0123456789") != std::string::npos) name = word;
    if (name != word) count = number(YAML::Node(digits), word, 1, max_devices);
  }
  for (uint64_t i = 0; i < count; ++i) plan.devices.push_back(read_profile(name));
}

void choose(Plan& plan, const Driver& driver) {
  plan.driver = driver.major;
  plan.driver_version = driver.version;
  plan.cuda_version = driver.cuda_version;
}

// Chooses a driver by its number, such as "550", with the version that the simulator gives it.
void choose_named(Plan& plan, const std::string& major) {
  std::string known;
  for (const Driver& driver : drivers) {
    const std::string number = std::to_string(driver.major);
    if (number == major) return choose(plan, driver);
    known += (known.empty() ? "" : ", ") + number;
  }
  refuse("'" + major + "' is not a driver that can be simulated; the drivers are " + known);
}

// Drivers that are not in the table get all names, because their own names are not known.
void choose_version(Plan& plan, const std::string& version) {
  for (const Driver& driver : drivers)
    if (version.starts_with(std::to_string(driver.major) + ".")) choose(plan, driver);
  plan.driver_version = version;
}

void connect(Plan& plan) {
  for (size_t i = 0; i < plan.devices.size(); ++i)
    for (size_t j = 0; j < plan.devices.size(); ++j)
      if (i != j && plan.devices[i].link[j] == 0xff)
        plan.devices[i].link[j] = plan.devices[i].numa_node == plan.devices[j].numa_node
                                      ? NVML_TOPOLOGY_NODE
                                      : NVML_TOPOLOGY_SYSTEM;
}

Plan read_set_file(const std::string& path) {
  const YAML::Node y = load(path);
  Plan plan;
  if (const YAML::Node driver = y["driver"]) {
    if (driver["version"]) choose_version(plan, driver["version"].as<std::string>());
    if (driver["cuda"]) {
      const std::string s = driver["cuda"].as<std::string>();
      const size_t dot = s.find('.');
      if (dot == std::string::npos) refuse(path + ", cuda: must be a version, for example 12.4");
      plan.cuda_version = static_cast<int>(number(YAML::Node(s.substr(0, dot)), path, 1, 99) * 1000 +
                                           number(YAML::Node(s.substr(dot + 1)), path, 0, 99) * 10);
    }
  }
  if (!y["devices"] || !y["devices"].IsSequence()) refuse(path + ": a list named devices is required");
  for (const YAML::Node& d : y["devices"]) {
    if (!d["profile"]) refuse(path + ": each device must have a profile");
    Facts f = read_profile(d["profile"].as<std::string>());
    apply(d, f, path);
    if (d["numa"]) f.numa_node = static_cast<int32_t>(number(d["numa"], path + ", numa", 0, 255));
    const uint64_t count = d["count"] ? number(d["count"], path + ", count", 1, max_devices) : 1;
    plan.devices.insert(plan.devices.end(), count, f);
  }
  for (const YAML::Node& link : y["nvlink"] ? y["nvlink"] : YAML::Node(YAML::NodeType::Sequence)) {
    if (!link.IsSequence() || link.size() != 3)
      refuse(path + ", nvlink: each entry must be [device, device, links]");
    const uint64_t last = plan.devices.size() - 1;
    const uint64_t a = number(link[0], path + ", nvlink", 0, last),
                   b = number(link[1], path + ", nvlink", 0, last);
    const auto n = static_cast<uint8_t>(number(link[2], path + ", nvlink", 1, NVML_NVLINK_MAX_LINKS));
    plan.devices[a].nvlink[b] = plan.devices[b].nvlink[a] = n;
  }
  return plan;
}

}  // namespace

fs::path profile_directory() {
  return fs::canonical("/proc/self/exe").parent_path().parent_path() / "lib" / "carve" / "sim" / "profiles";
}

fs::path library_directory(unsigned driver) {
  const fs::path folder = profile_directory().parent_path();
  return driver == any_driver.major ? folder : folder / std::to_string(driver);
}

std::vector<std::string> profile_names() {
  std::vector<std::string> names;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(profile_directory(), none))
    if (entry.path().extension() == ".yaml") names.push_back(entry.path().stem());
  std::sort(names.begin(), names.end());
  if (names.empty()) refuse("no profiles in " + profile_directory().string() + "; reinstall carve-sim");
  return names;
}

Facts read_profile(const std::string& name) {
  const auto names = profile_names();
  if (std::find(names.begin(), names.end(), name) == names.end()) {
    std::string list;
    for (const auto& n : names) list += (list.empty() ? "" : ", ") + n;
    refuse("no profile is named '" + name + "'; the profiles are " + list);
  }
  Facts f = defaults();
  const fs::path path = profile_directory() / (name + ".yaml");
  apply(load(path), f, path.string());
  if (name.size() >= sizeof f.profile) refuse("the name of profile " + name + " is too long");
  std::copy(name.begin(), name.end(), f.profile);
  return f;
}

Plan read_spec(const std::string& spec) {
  Plan plan;
  if (spec.find('/') != std::string::npos || spec.ends_with(".yaml") || spec.ends_with(".yml")) {
    if (!fs::exists(spec)) refuse("there is no file " + spec);
    try {
      plan = read_set_file(spec);
    } catch (const YAML::Exception& e) {
      refuse(spec + ": " + e.what());
    }
  } else {
    const size_t end = std::min(spec.find('@'), spec.size());
    if (end < spec.size()) choose_named(plan, spec.substr(end + 1));
    for (size_t from = 0; from <= end;) {
      const size_t comma = std::min(spec.find(',', from), end);
      add(plan, spec.substr(from, comma - from));
      from = comma + 1;
    }
  }
  if (plan.devices.empty() || plan.devices.size() > max_devices)
    refuse("'" + spec + "' has " + std::to_string(plan.devices.size()) + " devices; a set has 1 to " +
           std::to_string(max_devices));
  connect(plan);
  return plan;
}

}  // namespace carve::sim
