#include "fronts/pod/gpu_resources.h"

#include <algorithm>

#include "core/request.h"
#include "fronts/service_terms.h"

namespace carve::fronts {
namespace {

constexpr const char* ack_memory = "aliyun.com/gpu-mem";
constexpr const char* ack_core = "aliyun.com/gpu-core.percentage";
constexpr const char* ack_count = "aliyun.com/gpu-count";
constexpr const char* vke_memory = "vke.volcengine.com/mgpu-memory";
constexpr const char* vke_core = "vke.volcengine.com/mgpu-core";
constexpr const char* vke_count = "vke.volcengine.com/container-multiple-gpu";
constexpr const char* vke_policy = "vke.volcengine.com/mgpu-compute-policy";
constexpr const char* nvidia_devices = "nvidia.com/gpu";

constexpr uint64_t max_vke_devices = 8;
constexpr uint64_t min_vke_memory_mib = 256;  // A device: more than this on one, at least this on several.
constexpr uint64_t min_vke_total_memory_mib = 1024;  // More than this, on several devices.
constexpr uint64_t max_vke_memory_mib = 1'000'000'000;
constexpr std::string_view elastic =
    "elastic containers (VCI) do not support mGPU: only node (ECS) deployments do";

class ResourceReader {
 public:
  ResourceReader(JsonReader& reader, ErrorList& errors, const PodParts& pod)
      : reader_(reader), errors_(errors), pod_(pod) {}

  GpuResources read() {
    const JsonMember memory = limit(ack_memory), core = limit(ack_core);
    const JsonMember mib = limit(vke_memory), percent = limit(vke_core);
    const JsonMember devices = limit(nvidia_devices);
    const bool is_ack = memory || core, is_vke = mib || percent;
    if (is_ack + is_vke + static_cast<bool>(devices) > 1) {
      const JsonMember& first = memory ? memory : core ? core : mib ? mib : percent;
      const JsonMember& second = devices ? devices : mib ? mib : percent;
      errors_.add_sentence(second.path, shown_json(*second.value),
                           fmt::format("container {} mixes {} and {}; keep one", pod_.container,
                                       key_of(first), key_of(second)));
      return {};
    }
    if (is_ack) return {.gpu = ack(memory, core), .dialect = "ack"};
    if (is_vke) return {.gpu = vke(mib, percent), .dialect = "vke"};
    if (devices) return {.gpu = whole_devices(count(devices, 1, max_slice_devices))};
    return {};
  }

 private:
  // Kubernetes refuses a request of these resources that is not its limit.
  JsonMember limit(const char* key) {
    const JsonMember limit = reader_.named(pod_.limits, key);
    const JsonMember request = reader_.named(pod_.requests, key);
    if (request && (!limit || shown_json(*request.value) != shown_json(*limit.value)))
      errors_.add_sentence(request.path, shown_json(*request.value),
                           fmt::format("{}: {} is requested, and the limit differs; set the limit alone", key,
                                       shown_json(*request.value)));
    return limit;
  }

  std::string key_of(const JsonMember& member) const {
    return member.path.substr(pod_.limits.path.size() + 1);
  }

  template <class... A>
  void refuse(const JsonMember& member, const std::string& name, fmt::format_string<A...> form,
              A&&... values) {
    errors_.add_sentence(member.path, shown_json(*member.value),
                         fmt::format("{}: ", name) + fmt::format(form, std::forward<A>(values)...));
  }

  // Returns a quantity, 16 or "16", that is a multiple of `step`; nothing: an error.
  std::optional<uint64_t> count(const JsonMember& member, uint64_t low, uint64_t high, uint64_t step = 1) {
    const api::Json& value = *member.value;
    const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    const bool is_number = !text.empty() && text.size() <= 18 &&
                           std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
    const uint64_t number = is_number ? std::stoull(text) : 0;
    if (is_number && number >= low && number <= high && number % step == 0) return number;
    refuse(member, key_of(member), "{}; {} to {}{}", text.substr(0, 40), low, high,
           step == 1 ? "" : fmt::format(" in steps of {}", step));
    return std::nullopt;
  }

  void refuse_elastic() {
    const JsonMember eci = reader_.named(pod_.labels, "alibabacloud.com/eci");
    if (reader_.text(eci) == "true") errors_.add_sentence(eci.path, "true", std::string(elastic));
    const JsonMember vci = reader_.named(pod_.annotations, "vke.volcengine.com/burst-to-vci");
    if (reader_.text(vci) == "enforce") errors_.add_sentence(vci.path, "enforce", std::string(elastic));
  }

  static std::optional<objects::Gpu> whole_devices(std::optional<uint64_t> devices) {
    if (!devices) return std::nullopt;
    return objects::Gpu{.devices = static_cast<uint32_t>(*devices), .exclusive = true};
  }

  // Returns the number that a label or annotation has; 1: there is none.
  uint64_t devices_of(const JsonMember& member, const char* name, uint64_t max) {
    const std::string text = reader_.text(member);
    if (!member || !member.value->is_string()) return 1;
    uint64_t devices = 0;
    for (const char c : text)
      devices = c >= '0' && c <= '9' && devices <= max ? devices * 10 + (c - '0') : max + 1;
    if (devices >= 1 && devices <= max) return devices;
    refuse(member, name, "{}; 1 to {}", typed(text), max);
    return 1;
  }

  std::optional<objects::Gpu> ack(const JsonMember& memory, const JsonMember& core) {
    refuse_elastic();
    const JsonMember count_label = reader_.named(pod_.labels, ack_count);
    const uint64_t devices = devices_of(count_label, ack_count, max_slice_devices);
    if (!memory) {
      refuse(core, ack_core, "it needs {}", ack_memory);
      return std::nullopt;
    }
    const auto units = count(memory, 1, max_memory_units);
    if (core && count_label) refuse(core, ack_count, "it shares memory only; leave out {}", ack_core);
    const auto percent = core ? count(core, 5, 100, 5) : std::nullopt;
    if (!units) return std::nullopt;
    if (*units % devices != 0) {
      refuse(count_label, ack_count, "{} does not divide {} units equally", devices, *units);
      return std::nullopt;
    }
    objects::Gpu gpu{.memory = fmt::format("{} units", *units / devices),
                     .devices = static_cast<uint32_t>(devices)};
    if (percent) {
      gpu.share = fmt::format("{}%", *percent);
      gpu.isolation = text(Isolation::memory_and_compute);
    }
    return gpu;
  }

  std::optional<objects::Gpu> vke(const JsonMember& memory, const JsonMember& core) {
    refuse_elastic();
    const JsonMember policy = reader_.named(pod_.annotations, vke_policy);
    const std::string policy_word = reader_.text(policy);
    if (policy && !parse<Policy>(policy_word))
      refuse(policy, "mgpu-compute-policy", "{}; it is {}", policy_word.substr(0, 40),
             choice(Words<Policy>::words));
    const JsonMember count_annotation = reader_.named(pod_.annotations, vke_count);
    const uint64_t devices = devices_of(count_annotation, "container-multiple-gpu", max_vke_devices);
    if (!memory) return vke_whole_devices(core);
    if (!core) {
      refuse(memory, "mgpu-memory", "it needs mgpu-core");
      return std::nullopt;
    }
    const auto mib = count(memory, 0, max_vke_memory_mib);
    const auto percent = count(core, 1, 100 * devices);
    if (!mib || !percent || !is_vke_memory(memory, *mib, devices)) return std::nullopt;
    if (*percent * 100 % devices != 0) {
      refuse(core, "mgpu-core", "{} does not divide into whole 0.01 % over {} cards", *percent, devices);
      return std::nullopt;
    }
    return objects::Gpu{.memory = fmt::format("{}MiB", *mib / devices),
                        .share = std::string(text(Share{static_cast<uint32_t>(*percent * 100 / devices)})),
                        .devices = static_cast<uint32_t>(devices),
                        .isolation = std::string(text(Isolation::memory_and_compute)),
                        .policy = policy_word};
  }

  std::optional<objects::Gpu> vke_whole_devices(const JsonMember& core) {
    const auto percent = count(core, 1, 100 * max_slice_devices);
    if (percent && *percent % 100 == 0) return whole_devices(*percent / 100);
    if (percent && *percent > 100)
      refuse(core, "mgpu-core", "{}; 1 to 100, or whole cards as 100, 200, ...", *percent);
    else if (percent)
      refuse(core, "mgpu-core", "it needs mgpu-memory");
    return std::nullopt;
  }

  bool is_vke_memory(const JsonMember& memory, uint64_t mib, uint64_t devices) {
    if (devices == 1) {
      if (mib > min_vke_memory_mib) return true;
      refuse(memory, "mgpu-memory", "{}; single-card sharing needs more than {} MiB", mib,
             min_vke_memory_mib);
    } else if (mib <= min_vke_total_memory_mib) {
      refuse(memory, "mgpu-memory", "{} over {} cards; multi-card sharing needs more than {} MiB", mib,
             devices, min_vke_total_memory_mib);
    } else if (mib % devices != 0) {
      refuse(memory, "mgpu-memory", "{} does not divide equally over {} cards", mib, devices);
    } else if (mib / devices < min_vke_memory_mib) {
      refuse(memory, "mgpu-memory", "{} over {} cards; each needs at least {} MiB", mib, devices,
             min_vke_memory_mib);
    } else {
      return true;
    }
    return false;
  }

  JsonReader& reader_;
  ErrorList& errors_;
  const PodParts& pod_;
};

}  // namespace

GpuResources read_gpu_resources(JsonReader& reader, ErrorList& errors, const PodParts& pod) {
  return ResourceReader(reader, errors, pod).read();
}

}  // namespace carve::fronts
