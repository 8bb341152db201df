#include "dialects/eas/eas.h"

#include <algorithm>

#include "base/bytes.h"
#include "core/request.h"
#include "core/slice.h"
#include "dialects/json_reader.h"
#include "objects/rules/service_terms.h"

namespace carve::dialects {
namespace {

using objects::AutoscaleMetric;

using api::Json;

constexpr uint64_t max_gpu_memory = 1'000'000;  // GB or GiB; more than any device has.
constexpr uint64_t max_cpu = 1'000'000;         // Cores.
constexpr uint64_t max_memory = 1'000'000'000;  // MB.

struct MemoryUnit {
  const char* name;
  uint64_t bytes;
};
constexpr MemoryUnit decimal_unit{.name = "GB", .bytes = 1'000'000'000};
constexpr MemoryUnit binary_unit{.name = "GiB", .bytes = 1ull << 30};

bool is_ml(const std::string& instance_type) { return instance_type.starts_with("ml"); }

// Translates one document; each function reads one part of it.
class Translation {
 public:
  Translation(const Json& document, const EasContext& context)
      : context_(context), reader_(document, errors_) {}

  Result<EasService, api::FieldErrors> run(std::string_view document) {
    service_.api_version = objects::api_version;
    service_.kind = "Service";
    service_.spec.source = {.dialect = "eas", .document = std::string(document)};
    read_name();
    service_.spec.replicas =
        static_cast<uint32_t>(reader_.whole_as_text(metadata("instance"), 1, max_eas_instances).value_or(1));
    read_pool();
    read_gpu();
    read_resources();
    read_update();
    read_container();
    read_autoscaler();
    if (errors_.empty()) errors_.add_all(objects::check(service_));
    if (!errors_.empty()) return tl::unexpected(errors_.all());
    for (std::string& message : reader_.without_effect()) warnings_.push_back(std::move(message));
    return EasService{.service = std::move(service_), .warnings = std::move(warnings_)};
  }

 private:
  // Returns a member of metadata. It may also be at the top level as "metadata.name", where PAI's SDK and
  // eascmd's -D write it.
  JsonMember metadata(const std::string& key) { return reader_.value(reader_.root(), "metadata." + key); }

  void read_name() {
    JsonMember member = metadata("name");
    if (!member) member = reader_.value(reader_.root(), "name");
    if (!member)
      return errors_.add("metadata.name", "", "the service has no name; add one, as in \"name\": \"chat\"");
    const std::string given = reader_.text(member);
    const auto is_allowed = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    };
    std::string name = given;
    for (char& c : name) c = c == '_' ? '-' : static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    if (member.value->is_string() &&
        (!std::ranges::all_of(given, is_allowed) || !objects::is_object_name(name)))
      errors_.add(
          member.path, given,
          "{} is not a valid name; use 1 to {} letters, digits and _, with a letter or digit first and last",
          objects::typed(given), objects::max_name_bytes);
    service_.metadata.name = name;
    service_.metadata.annotations[eas_name_annotation] = given;
  }

  void read_pool() {
    const JsonMember member = metadata("resource");
    pool_ = reader_.text(member);
    if (!pool_.empty() && !is_name(pool_))
      errors_.add(member.path, pool_, "{} is not a valid node pool name", objects::typed(pool_));
    service_.spec.pool = pool_;
  }

  std::string pool_text() const { return pool_.empty() ? "the controller" : "pool " + pool_; }

  // The unit depends on the instance type, so the replica must not run on a node of another kind. Nodes
  // without a type may be of any kind.
  bool may_have_type(const std::string& instance_type) {
    const auto is_other = [&](const std::string& type) {
      return !type.empty() && is_ml(type) != is_ml(instance_type);
    };
    const auto other = std::ranges::find_if(context_.pool_instance_types, is_other);
    if (other == context_.pool_instance_types.end()) return true;
    errors_.add(
        type_path_, instance_type,
        "{}: {} has a node of type {}, on which gpu_memory would be in {}; set metadata.resource to a "
        "pool whose nodes are all {}",
        objects::typed(instance_type), pool_text(), *other, is_ml(*other) ? "GB" : "GiB",
        is_ml(instance_type) ? "ml.*" : "of one type");
    return false;
  }

  // Returns the unit of gpu_memory, or no value if the instance types of the pool use different units.
  std::optional<MemoryUnit> memory_unit(const std::string& instance_type) {
    const auto& types = context_.pool_instance_types;
    if (!instance_type.empty()) {
      if (!may_have_type(instance_type)) return std::nullopt;
      return is_ml(instance_type) ? decimal_unit : binary_unit;
    }
    const auto other = std::ranges::find_if_not(types, is_ml);
    if (std::ranges::none_of(types, is_ml)) return binary_unit;
    if (other == types.end()) return decimal_unit;
    errors_.add_message(
        "metadata.gpu_memory", "",
        fmt::format("{} has ml.* and {} nodes: gpu_memory would be in GB on one and in GiB on the other; "
                    "set metadata.resource to a pool of one kind",
                    pool_text(), other->starts_with("ecs") ? "ecs.*" : "other"));
    return std::nullopt;
  }

  std::string instance_type() {
    const JsonMember older = reader_.value(reader_.root(), "cloud.computing.instance_type");
    const JsonMember newer = reader_.value(
        reader_.item(reader_.list_value(reader_.root(), "cloud.computing.instances"), 0), "type");
    const std::string older_type = reader_.text(older), type = reader_.text(newer);
    type_path_ = type.empty() ? older.path : newer.path;
    return type.empty() ? older_type : type;
  }

  void read_gpu() {
    const JsonMember memory = metadata("gpu_memory");
    const JsonMember percentage = metadata("gpu_core_percentage");
    const std::string type = instance_type();
    const uint64_t devices = reader_.whole_as_text(metadata("gpu"), 0, max_slice_devices).value_or(0);
    if (devices > 0) {
      service_.spec.gpu = objects::Gpu{.devices = static_cast<uint32_t>(devices), .exclusive = true};
      if (memory || percentage)
        warnings_.push_back(fmt::format(
            "gpu is {}, so the instance gets {}; gpu_memory and gpu_core_percentage are ignored", devices,
            devices == 1 ? "the whole device" : fmt::format("{} whole devices", devices)));
      return;
    }
    if (!memory) {
      if (percentage) warnings_.push_back("gpu_core_percentage is ignored without gpu_memory");
      return;
    }
    const auto amount = reader_.whole_as_text(memory, 1);
    const auto share = reader_.whole_as_text(percentage, 1, 100);
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
      errors_.add(
          field, value,
          "{} {} is more than the {} MiB that are usable on the largest device{}; request at most {} {}",
          amount, unit.name, largest >> 20, pool_.empty() ? "" : " of pool " + pool_, largest / unit.bytes,
          unit.name);
    return false;
  }

  void read_resources() {
    if (const auto cores = reader_.whole_as_text(metadata("cpu"), 1, max_cpu))
      service_.spec.cpu = {.request = fmt::format("{}", *cores), .limit = fmt::format("{}", *cores)};
    if (const auto megabytes = reader_.whole_as_text(metadata("memory"), 1, max_memory))
      service_.spec.memory = {.request = fmt::format("{}MB", *megabytes),
                              .limit = fmt::format("{}MB", *megabytes)};
  }

  // Returns a number of instances from a number such as 2 or a percentage such as "25%".
  std::optional<uint32_t> instances(const JsonMember& member, bool rounds_up) {
    const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
    const std::string as_text = member && member.value->is_string() ? member.value->get<std::string>() : "0";
    if (!as_text.empty() && std::ranges::all_of(as_text, is_digit)) {
      const auto number = reader_.whole_as_text(member, 0, max_eas_instances);
      return number ? std::optional(static_cast<uint32_t>(*number)) : std::nullopt;
    }
    const std::string given = reader_.text(member);
    const auto share = parse_share(given);
    if (!share && given != "0%") {
      errors_.add(member.path, given, "{} is not a whole number from 0 to {} or a percentage from 0% to 100%",
                  objects::typed(given), max_eas_instances);
      return std::nullopt;
    }
    const uint64_t parts = uint64_t{service_.spec.replicas} * (share ? share->basis_points : 0);
    return static_cast<uint32_t>((parts + (rounds_up ? whole_device.basis_points - 1 : 0)) /
                                 whole_device.basis_points);
  }

  void read_update() {
    const JsonMember surge = metadata("rolling_strategy.max_surge");
    const JsonMember unavailable = metadata("rolling_strategy.max_unavailable");
    objects::Update& update = service_.spec.update;
    update.max_surge = instances(surge, /*rounds_up=*/true).value_or(update.max_surge);
    update.max_unavailable = instances(unavailable, /*rounds_up=*/false).value_or(update.max_unavailable);
    if (update.max_surge == 0 && update.max_unavailable == 0) {
      if (surge && unavailable && !surge.value->is_string() && !unavailable.value->is_string())
        errors_.add(
            "metadata.rolling_strategy", "",
            "max_surge and max_unavailable are both 0, so no instance could be replaced; set one to 1");
      update.max_unavailable = 1;  // As in Kubernetes if both percentages are rounded to 0.
    }
    if (const auto seconds =
            reader_.whole_as_text(metadata("eas.termination_grace_period"), 0, objects::max_seconds))
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
                  "the container also has a command; keep one of them");
    if (!command.empty() || !script.empty())
      run.command = {"/bin/sh", "-c", command.empty() ? script : command};
    if (run.command.empty() && run.image.empty() && errors_.all().size() == errors_before)
      errors_.add("containers[0].command", "", "there is nothing to run; add command, script or image{}",
                  reader_.value(reader_.root(), "processor") ? " (a processor has no effect here)" : "");
    if (const auto port = reader_.whole_as_text(reader_.value(container, "port"), 1, UINT16_MAX))
      service_.spec.port = static_cast<uint32_t>(*port);
    read_env(reader_.list(container, "env"));
  }

  // Reads PAI's scaling strategies whose load can be measured here: the metrics of `carve eas autoscale`.
  void read_autoscaler() {
    const JsonMember root = reader_.root();
    JsonMember scaler = reader_.object(root, "autoscaler");
    if (!scaler) scaler = reader_.object(reader_.object(root, "metadata"), "autoscaler");
    if (!scaler) return;
    const size_t errors_before = errors_.all().size();
    objects::Autoscale out{.target = 0};
    const JsonMember least = reader_.value(scaler, "min");
    if (least && (*least.value == 0 || *least.value == "0"))
      errors_.add(
          least.path, "0",
          "0: services cannot be scaled to 0 instances; set min to 1, or stop the service with carve eas "
          "stop");
    else
      out.min = static_cast<uint32_t>(reader_.whole_as_text(least, 1, max_eas_instances).value_or(1));
    const JsonMember most = reader_.value(scaler, "max");
    if (!most)
      errors_.add(scaler.path + ".max", "", "is required; set the maximum number of instances, 1 to {}",
                  max_eas_instances);
    out.max = static_cast<uint32_t>(reader_.whole_as_text(most, 1, max_eas_instances).value_or(out.min));
    if (out.max < out.min)
      errors_.add(most.path, shown_json(*most.value), "{} is less than min, {}", out.max, out.min);
    read_strategy(scaler, out);
    if (errors_.all().size() == errors_before) service_.spec.autoscale = out;
  }

  void read_strategy(const JsonMember& scaler, objects::Autoscale& out) {
    const JsonMember strategies = reader_.object(scaler, "strategies");
    for (const auto& [name, metric] : {std::pair("gpu", AutoscaleMetric::gpu_utilization),
                                       {"qps", AutoscaleMetric::qps},
                                       {"concurrency", AutoscaleMetric::concurrency}}) {
      const JsonMember load = reader_.value(strategies, name);
      if (!load) continue;
      if (out.target != 0) {
        errors_.add(load.path, shown_json(*load.value),
                    "only one metric may be used for scaling; keep one of them");
        continue;
      }
      out.target = static_cast<uint32_t>(reader_.whole_as_text(load, 1, UINT32_MAX).value_or(1));
      out.metric = metric;
      if (!service_.spec.port && out.metric != AutoscaleMetric::gpu_utilization)
        errors_.add(load.path, shown_json(*load.value),
                    "requires a port of the service; add containers[0].port, or use strategies.gpu");
    }
    if (out.target == 0)
      errors_.add(scaler.path + ".strategies", strategies ? shown_json(*strategies.value) : "",
                  "one of qps, concurrency and gpu is required; add one");
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
        errors_.add(item.path + ".name", name, "the name of a variable must not be empty or contain =");
      else if (!service_.spec.run.env.emplace(name, value).second)
        errors_.add(name_member.path, name, "{} occurs twice; keep one of them", objects::typed(name));
    }
    if (bytes > objects::max_env_bytes)
      errors_.add(list.path, fmt::format("{} bytes", bytes), "{} bytes are too many; use at most {}", bytes,
                  objects::max_env_bytes);
  }

  const EasContext& context_;
  objects::ErrorList errors_;
  JsonReader reader_;
  objects::Service service_;
  std::string pool_;
  std::string type_path_;  // Path of the instance type in the document.
  std::vector<std::string> warnings_;
};

api::FieldErrors one_error(std::string message) {
  return {{.field = "", .value = "", .message = std::move(message)}};
}

}  // namespace

Result<EasService, api::FieldErrors> from_eas(std::string_view json, const EasContext& context) {
  if (json.size() > api::max_document_bytes)
    return tl::unexpected(one_error(
        fmt::format("the document has {} bytes; use at most {}", json.size(), api::max_document_bytes)));
  const auto document = api::parse(json);
  if (!document) return tl::unexpected(one_error(document.error()));
  if (!document->is_object()) return tl::unexpected(one_error("the document must be a JSON object"));
  return Translation(*document, context).run(json);
}

bool is_eas(std::string_view json) {
  const auto document = api::parse(json);
  return document && document->is_object() && !document->contains("apiVersion") &&
         !document->contains("kind") && !document->contains("spec");
}

std::string eas_name(std::string_view json) {
  const auto document = api::parse(json);
  if (!document || !document->is_object()) return "";
  objects::ErrorList ignored;
  JsonReader reader(*document, ignored);
  JsonMember name = reader.value(reader.root(), "metadata.name");
  if (!name) name = reader.value(reader.root(), "name");
  return reader.text(name);
}

bool is_whole_eas(std::string_view json) {
  const auto document = api::parse(json);
  return document && document->is_object() && document->contains("containers") && !eas_name(json).empty();
}

std::string eas_pool(std::string_view json) {
  const auto document = api::parse(json);
  if (!document) return "";
  objects::ErrorList ignored;
  JsonReader reader(*document, ignored);
  if (!document->is_object()) return "";
  return reader.text(reader.value(reader.root(), "metadata.resource"));
}

}  // namespace carve::dialects
