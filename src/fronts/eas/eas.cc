#include "fronts/eas/eas.h"

#include <algorithm>

#include "base/bytes.h"
#include "core/request.h"
#include "core/slice.h"
#include "fronts/json_reader.h"
#include "fronts/service_terms.h"

namespace carve::fronts {
namespace {

using api::Json;

constexpr uint64_t max_gpu_memory = 1'000'000;  // GB or GiB: more than any device has.
constexpr uint64_t max_cpu = 1'000'000;         // Cores.
constexpr uint64_t max_memory = 1'000'000'000;  // MB.

struct MemoryUnit {
  const char* name;
  uint64_t bytes;
};
constexpr MemoryUnit decimal_unit{.name = "GB", .bytes = 1'000'000'000};
constexpr MemoryUnit binary_unit{.name = "GiB", .bytes = 1ull << 30};

bool is_ml(const std::string& instance_type) { return instance_type.starts_with("ml"); }

// Reads one document; each function reads one part.
class Translation {
 public:
  Translation(const Json& document, const EasContext& context)
      : context_(context),
        reader_(document, errors_),
        metadata_(reader_.object(reader_.root(), "metadata")) {}

  Result<EasService, api::FieldErrors> run(std::string_view document) {
    service_.api_version = objects::api_version;
    service_.kind = "Service";
    service_.spec.source = {.dialect = "eas", .document = std::string(document)};
    read_name();
    service_.spec.replicas = static_cast<uint32_t>(
        reader_.whole(reader_.value(metadata_, "instance"), 1, max_eas_instances).value_or(1));
    read_pool();
    read_gpu();
    read_resources();
    read_update();
    read_container();
    if (errors_.empty()) errors_.add_all(check(service_));
    if (!errors_.empty()) return tl::unexpected(errors_.all());
    for (std::string& sentence : reader_.without_effect()) warnings_.push_back(std::move(sentence));
    return EasService{.service = std::move(service_), .warnings = std::move(warnings_)};
  }

 private:
  void read_name() {
    JsonMember member = reader_.value(metadata_, "name");
    if (!member) member = reader_.value(reader_.root(), "name");
    if (!member)
      return errors_.add("metadata.name", "", "the service has no name; add it, as in \"name\": \"chat\"");
    const std::string given = reader_.text(member);
    const auto is_allowed = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    };
    std::string name = given;
    for (char& c : name) c = c == '_' ? '-' : static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    if (member.value->is_string() && (!std::ranges::all_of(given, is_allowed) || !is_object_name(name)))
      errors_.add(
          member.path, given,
          "{} is not a name; use 1 to {} letters, digits and _, with a letter or digit first and last",
          typed(given), max_name_bytes);
    service_.metadata.name = name;
    service_.metadata.annotations[eas_name_annotation] = given;
  }

  void read_pool() {
    const JsonMember member = reader_.value(metadata_, "resource");
    pool_ = reader_.text(member);
    if (!pool_.empty() && !is_name(pool_))
      errors_.add(member.path, pool_, "{} is not the name of a node pool", typed(pool_));
    service_.spec.pool = pool_;
  }

  // Returns the unit of gpu_memory, or nothing: the pool's instance types contradict each other.
  std::optional<MemoryUnit> memory_unit(const std::string& instance_type) {
    if (!instance_type.empty()) return is_ml(instance_type) ? decimal_unit : binary_unit;
    const auto& types = context_.pool_instance_types;
    const auto other = std::ranges::find_if_not(types, is_ml);
    if (std::ranges::none_of(types, is_ml)) return binary_unit;
    if (other == types.end()) return decimal_unit;
    errors_.add_sentence(
        "metadata.gpu_memory", "",
        fmt::format("{} has ml.* and {} nodes: gpu_memory would be GB on one and GiB on the other; "
                    "name cloud.computing.instances[].type",
                    pool_.empty() ? "the pool" : "pool " + pool_,
                    other->starts_with("ecs") ? "ecs.*" : "other"));
    return std::nullopt;
  }

  std::string instance_type() {
    const JsonMember computing = reader_.object(reader_.object(reader_.root(), "cloud"), "computing");
    const std::string older = reader_.text(reader_.value(computing, "instance_type"));
    const std::string type =
        reader_.text(reader_.value(reader_.item(reader_.list(computing, "instances"), 0), "type"));
    return type.empty() ? older : type;
  }

  void read_gpu() {
    const JsonMember memory = reader_.value(metadata_, "gpu_memory");
    const JsonMember percentage = reader_.value(metadata_, "gpu_core_percentage");
    const std::string type = instance_type();
    const uint64_t devices = reader_.whole(reader_.value(metadata_, "gpu"), 0, max_slice_devices).value_or(0);
    if (devices > 0) {
      service_.spec.gpu = objects::Gpu{.devices = static_cast<uint32_t>(devices), .exclusive = true};
      if (memory || percentage)
        warnings_.push_back(fmt::format(
            "gpu is {}: the instance takes {}; gpu_memory and gpu_core_percentage are ignored", devices,
            devices == 1 ? "the whole device" : fmt::format("{} whole devices", devices)));
      return;
    }
    if (!memory) {
      if (percentage) warnings_.push_back("gpu_core_percentage is ignored: it needs gpu_memory");
      return;
    }
    const auto amount = reader_.whole(memory, 1);
    const auto share = reader_.whole(percentage, 1, 100);
    const auto unit = memory_unit(type);
    if (!amount || !unit || !is_on_one_device(*amount, *unit)) return;
    objects::Gpu gpu{.memory = fmt::format("{}{}", *amount, unit->name)};
    if (share) {
      gpu.share = fmt::format("{}%", *share);
      gpu.policy = text(Policy::fixed_share);
    }
    service_.spec.gpu = gpu;
  }

  bool is_on_one_device(uint64_t amount, const MemoryUnit& unit) {
    const uint64_t largest = context_.largest_usable_bytes.value_or(UINT64_MAX);
    if (amount <= max_gpu_memory && amount * unit.bytes <= largest) return true;
    const std::string field = "metadata.gpu_memory", value = fmt::format("{}", amount);
    if (!context_.largest_usable_bytes)
      errors_.add(field, value, "{} {} is more than any device has", amount, unit.name);
    else
      errors_.add(field, value,
                  "{} {} is more than {} MiB, which the largest device{} has usable; ask for at most {} {}",
                  amount, unit.name, largest >> 20, pool_.empty() ? "" : " of pool " + pool_,
                  largest / unit.bytes, unit.name);
    return false;
  }

  void read_resources() {
    if (const auto cores = reader_.whole(reader_.value(metadata_, "cpu"), 1, max_cpu))
      service_.spec.cpu = {.request = fmt::format("{}", *cores), .limit = fmt::format("{}", *cores)};
    if (const auto megabytes = reader_.whole(reader_.value(metadata_, "memory"), 1, max_memory))
      service_.spec.memory = {.request = fmt::format("{}MB", *megabytes),
                              .limit = fmt::format("{}MB", *megabytes)};
  }

  // Returns a number of instances: 2, or "25%" of them.
  std::optional<uint32_t> instances(const JsonMember& member, bool rounds_up) {
    if (!member || !member.value->is_string()) {
      const auto number = reader_.whole(member, 0, max_eas_instances);
      return number ? std::optional(static_cast<uint32_t>(*number)) : std::nullopt;
    }
    const std::string given = reader_.text(member);
    const auto share = parse_share(given);
    if (!share && given != "0%") {
      errors_.add(member.path, given, "{} is not a whole number from 0 to {} or a percentage from 0% to 100%",
                  typed(given), max_eas_instances);
      return std::nullopt;
    }
    const uint64_t parts = uint64_t{service_.spec.replicas} * (share ? share->basis_points : 0);
    return static_cast<uint32_t>((parts + (rounds_up ? whole_device.basis_points - 1 : 0)) /
                                 whole_device.basis_points);
  }

  void read_update() {
    const JsonMember surge = reader_.value(metadata_, "rolling_strategy.max_surge");
    const JsonMember unavailable = reader_.value(metadata_, "rolling_strategy.max_unavailable");
    objects::Update& update = service_.spec.update;
    update.max_surge = instances(surge, /*rounds_up=*/true).value_or(update.max_surge);
    update.max_unavailable = instances(unavailable, /*rounds_up=*/false).value_or(update.max_unavailable);
    if (update.max_surge == 0 && update.max_unavailable == 0) {
      if (surge && unavailable && !surge.value->is_string() && !unavailable.value->is_string())
        errors_.add(
            "metadata.rolling_strategy", "",
            "max_surge and max_unavailable are both 0, and no instance could be replaced; set one to 1");
      update.max_unavailable = 1;  // As Kubernetes does if percentages are rounded to 0.
    }
    if (const auto seconds =
            reader_.whole(reader_.value(metadata_, "eas.termination_grace_period"), 0, max_seconds))
      service_.spec.termination_grace_period_seconds = static_cast<uint32_t>(*seconds);
  }

  void read_container() {
    const JsonMember container = reader_.item(reader_.list(reader_.root(), "containers"), 0);
    objects::Run& run = service_.spec.run;
    const size_t errors_before = errors_.all().size();
    run.image = reader_.text(reader_.value(container, "image"));
    const std::string command = reader_.text(reader_.value(container, "command"));
    const JsonMember script_member = reader_.value(container, "script");
    const std::string script = reader_.text(script_member);
    if (!command.empty() && !script.empty())
      errors_.add(script_member.path, shown_json(*script_member.value),
                  "the container has a command too; keep one of them");
    if (!command.empty() || !script.empty())
      run.command = {"/bin/sh", "-c", command.empty() ? script : command};
    if (run.command.empty() && run.image.empty() && errors_.all().size() == errors_before)
      errors_.add("containers[0].command", "", "there is nothing to run; add command, script or image{}",
                  reader_.value(reader_.root(), "processor") ? " (a processor has no effect here)" : "");
    if (const auto port = reader_.whole(reader_.value(container, "port"), 1, UINT16_MAX))
      service_.spec.port = static_cast<uint32_t>(*port);
    read_env(reader_.list(container, "env"));
  }

  void read_env(const JsonMember& list) {
    if (!list) return;
    size_t bytes = 0;
    for (size_t i = 0; i < list.value->size(); ++i) {
      const JsonMember item = reader_.item(list, i);
      if (!item) continue;
      const JsonMember name_member = reader_.value(item, "name");
      const std::string name = reader_.text(name_member);
      const std::string value = reader_.text(reader_.value(item, "value"));
      bytes += name.size() + value.size() + 2;
      if (name.empty() || name.find('=') != std::string::npos)
        errors_.add(item.path + ".name", name, "the name of a variable is not empty and has no =");
      else if (!service_.spec.run.env.emplace(name, value).second)
        errors_.add(name_member.path, name, "{} occurs twice; keep one of them", typed(name));
    }
    if (bytes > max_env_bytes)
      errors_.add(list.path, fmt::format("{} bytes", bytes), "{} bytes are too many; use at most {}", bytes,
                  max_env_bytes);
  }

  const EasContext& context_;
  ErrorList errors_;
  JsonReader reader_;
  JsonMember metadata_;
  objects::Service service_;
  std::string pool_;
  std::vector<std::string> warnings_;
};

api::FieldErrors one_error(std::string sentence) {
  return {{.field = "", .value = "", .sentence = std::move(sentence)}};
}

}  // namespace

Result<EasService, api::FieldErrors> from_eas(std::string_view json, const EasContext& context) {
  if (json.size() > objects::max_document_bytes)
    return tl::unexpected(one_error(fmt::format("the document has {} bytes; it may have at most {}",
                                                json.size(), objects::max_document_bytes)));
  const auto document = api::parse(json);
  if (!document) return tl::unexpected(one_error(document.error()));
  if (!document->is_object()) return tl::unexpected(one_error("the document is not an object with metadata"));
  return Translation(*document, context).run(json);
}

bool is_eas(std::string_view json) {
  const auto document = api::parse(json);
  return document && document->is_object() && !document->contains("apiVersion") &&
         !document->contains("kind") && !document->contains("spec");
}

std::string eas_pool(std::string_view json) {
  const auto document = api::parse(json);
  if (!document) return "";
  ErrorList ignored;
  JsonReader reader(*document, ignored);
  if (!document->is_object()) return "";
  return reader.text(reader.value(reader.object(reader.root(), "metadata"), "resource"));
}

}  // namespace carve::fronts
