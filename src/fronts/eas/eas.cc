#include "fronts/eas/eas.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "fronts/service_terms.h"
#include "wire/api/json_value.h"

namespace carve::fronts {
namespace {

using api::FieldErrors;
using api::Json;

constexpr uint64_t gigabyte = 1'000'000'000;
constexpr uint64_t gibibyte = 1ull << 30;
constexpr uint64_t max_amount = 1'000'000;  // Of any whole number in a document.

// Reads one document and collects its errors and warnings.
class EasReader {
 public:
  EasReader(const Json& document, const EasContext& context) : document_(document), context_(context) {}

  Result<EasService, FieldErrors> read(std::string_view text) {
    if (!document_.is_object()) return tl::unexpected(FieldErrors{{"", "", "the document is not an object"}});
    metadata_ = object_at(document_, "metadata");
    out_.service.api_version = objects::api_version;
    out_.service.kind = "Service";
    out_.service.spec.source = {.dialect = "eas", .document = std::string(text)};
    read_name();
    read_counts();
    read_gpu();
    read_container();
    read_rollout();
    warn_of_fields();
    if (!errors_.empty()) return tl::unexpected(std::move(errors_));
    return std::move(out_);
  }

 private:
  void error(std::string field, const Json* value, const std::string& rule) {
    const std::string shown = value != nullptr ? api::detail::shown(*value) : "";
    if (errors_.size() < api::max_field_errors)
      errors_.push_back(
          {.field = field,
           .value = shown,
           .sentence = fmt::format("{}: {}{}{}", field, shown, shown.empty() ? "" : " ", rule)});
  }
  void warn(std::string sentence) { out_.warnings.push_back(std::move(sentence)); }

  const Json& object_at(const Json& parent, const char* name) {
    static const Json empty = Json::object();
    const auto found = parent.find(name);
    if (found == parent.end() || found->is_null()) return empty;
    if (found->is_object()) return *found;
    error(name, &*found, "is not an object");
    return empty;
  }

  // Returns a whole number of the metadata; no value if it is absent, null or wrong.
  std::optional<uint64_t> number(const char* name, uint64_t from, uint64_t to, const std::string& rule) {
    const auto found = metadata_.find(name);
    if (found == metadata_.end() || found->is_null()) return std::nullopt;
    if (found->is_number_unsigned() && found->get<uint64_t>() >= from && found->get<uint64_t>() <= to)
      return found->get<uint64_t>();
    error(fmt::format("metadata.{}", name), &*found, rule);
    return std::nullopt;
  }

  std::string text_at(const Json& parent, const char* name, const std::string& field) {
    const auto found = parent.find(name);
    if (found == parent.end() || found->is_null()) return "";
    if (found->is_string()) return found->get<std::string>();
    error(field, &*found, "is not a text");
    return "";
  }

  // A name has letters, digits and `_`; slices are named in lower case with `-`.
  void read_name() {
    std::string name = text_at(metadata_, "name", "metadata.name");
    if (name.empty() && document_.contains("name")) name = text_at(document_, "name", "name");
    if (name.empty()) return error("metadata.name", nullptr, "the name is missing");
    std::string lower = name;
    for (char& c : lower) c = c == '_' ? '-' : c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    if (!is_object_name(lower)) {
      const Json shown = name;
      return error(
          "metadata.name", &shown,
          fmt::format("is not a name; use 1 to {} letters, digits and _, with a letter or a digit at both "
                      "ends",
                      max_object_name_bytes));
    }
    out_.service.metadata.name = lower;
    out_.service.metadata.annotations[eas_name_annotation] = name;
  }

  void read_counts() {
    objects::ServiceSpec& spec = out_.service.spec;
    spec.replicas =
        static_cast<uint32_t>(number("instance", 1, max_service_replicas,
                                     fmt::format("is not a whole number from 1 to {}", max_service_replicas))
                                  .value_or(1));
    spec.pool = text_at(metadata_, "resource", "metadata.resource");
    if (const auto cores = number("cpu", 1, 1000, "is not a whole number of cores from 1 to 1000"))
      spec.cpu.request = fmt::format("{}", *cores);
    if (const auto megabytes =
            number("memory", 1, max_amount * 1000, "is not a whole number of MB from 1 up"))
      spec.memory.request = fmt::format("{}MB", *megabytes);
  }

  // Returns whether gpu_memory counts GB; no value if the pool has nodes of both kinds.
  std::optional<bool> counts_gigabytes() {
    std::string type;
    const Json& computing = object_at(object_at(document_, "cloud"), "computing");
    if (const auto list = computing.find("instances");
        list != computing.end() && list->is_array() && !list->empty())
      type = text_at(list->front(), "type", "cloud.computing.instances[0].type");
    if (!type.empty()) return type.starts_with("ml");
    const auto counts_gb = [](const std::string& t) { return t.starts_with("ml"); };
    const auto& types = context_.pool_instance_types;
    const bool some = std::ranges::any_of(types, counts_gb);
    if (some && !std::ranges::all_of(types, counts_gb)) {
      error(
          "metadata.gpu_memory", nullptr,
          fmt::format("pool {} has ml.* and ecs.* nodes: gpu_memory would be GB on one and GiB on the other; "
                      "name cloud.computing.instances[].type",
                      out_.service.spec.pool));
      return std::nullopt;
    }
    return some;
  }

  void read_gpu() {
    const auto whole = number("gpu", 0, max_slice_devices,
                              fmt::format("is not a whole number from 0 to {}", max_slice_devices));
    const auto memory = number("gpu_memory", 1, max_amount, "is not a whole number from 1 up");
    const auto share = number("gpu_core_percentage", 1, 100, "is not a whole number from 1 to 100");
    if (whole.value_or(0) > 0) {
      if (metadata_.contains("gpu_memory") || metadata_.contains("gpu_core_percentage"))
        warn(fmt::format(
            "gpu is {}: the instance takes the whole device{}; gpu_memory and gpu_core_percentage "
            "are ignored",
            *whole, *whole == 1 ? "" : "s"));
      out_.service.spec.gpu = objects::Gpu{.devices = static_cast<uint32_t>(*whole), .exclusive = true};
      return;
    }
    if (!metadata_.contains("gpu_memory")) {
      if (share) warn("gpu_core_percentage is ignored: it needs gpu_memory");
      return;
    }
    if (!memory) return;
    const auto decimal = counts_gigabytes();
    if (!decimal) return;
    const uint64_t bytes = *memory * (*decimal ? gigabyte : gibibyte);
    const char* unit = *decimal ? "GB" : "GiB";
    if (context_.largest_usable_bytes && bytes > *context_.largest_usable_bytes)
      return error("metadata.gpu_memory", nullptr,
                   fmt::format("{} {} is more than the largest device has usable, {} MiB; ask for less",
                               *memory, unit, *context_.largest_usable_bytes >> 20));
    out_.service.spec.gpu = objects::Gpu{.memory = fmt::format("{}{}", *memory, unit)};
    if (!share) return;
    out_.service.spec.gpu->share = fmt::format("{}%", *share);
    out_.service.spec.gpu->policy = text(Policy::fixed_share);
  }

  void read_environment(const Json& container) {
    const auto env = container.find("env");
    if (env == container.end() || env->is_null()) return;
    if (!env->is_array()) return error("containers[0].env", &*env, "is not a list of {name, value}");
    for (size_t i = 0; i < env->size(); ++i) {
      const Json& variable = (*env)[i];
      const std::string field = fmt::format("containers[0].env[{}]", i);
      if (!variable.is_object()) {
        error(field, &variable, "is not {name, value}");
        continue;
      }
      const std::string name = text_at(variable, "name", field + ".name");
      if (name.empty()) error(field + ".name", nullptr, "the name is missing");
      out_.service.spec.run.env[name] = text_at(variable, "value", field + ".value");
    }
  }

  void read_port(const Json& container) {
    const auto port = container.find("port");
    if (port == container.end() || port->is_null()) return;
    if (port->is_number_unsigned() && port->get<uint64_t>() >= 1 && port->get<uint64_t>() <= 65535)
      out_.service.spec.port = port->get<uint32_t>();
    else
      error("containers[0].port", &*port, "is not a whole number from 1 to 65535");
  }

  void read_container() {
    const auto list = document_.find("containers");
    if (list == document_.end() || !list->is_array() || list->empty() || !list->front().is_object())
      return error("containers", nullptr,
                   "there is none; name a command: \"containers\": [{\"command\": \"...\"}]");
    const Json& container = list->front();
    objects::Run& run = out_.service.spec.run;
    run.image = text_at(container, "image", "containers[0].image");
    std::string line = text_at(container, "command", "containers[0].command");
    if (line.empty()) line = text_at(container, "script", "containers[0].script");
    if (!line.empty()) run.command = {"/bin/sh", "-c", line};
    if (line.empty() && run.image.empty())
      error("containers[0].command", nullptr, "the command is missing, and there is no image");
    read_environment(container);
    read_port(container);
    if (list->size() > 1) warn(fmt::format("containers[1]: has no effect here; a replica has one container"));
    warn_of_others(container, "containers[0].", {"image", "command", "script", "env", "port"});
  }

  // Reads a whole number or a percentage of the replicas, rounded up.
  void read_allowance(const Json& strategy, const char* name, uint32_t& out) {
    const auto found = strategy.find(name);
    if (found == strategy.end() || found->is_null()) return;
    const std::string field = fmt::format("metadata.rolling_strategy.{}", name);
    if (found->is_number_unsigned() && found->get<uint64_t>() <= max_service_replicas) {
      out = found->get<uint32_t>();
      return;
    }
    const std::string word = found->is_string() ? found->get<std::string>() : "";
    uint32_t percent = 0;
    const auto [end, failed] = std::from_chars(word.data(), word.data() + word.size(), percent);
    if (failed == std::errc() && std::string_view(end) == "%" && percent <= 100)
      out = (out_.service.spec.replicas * percent + 99) / 100;
    else
      error(field, &*found,
            fmt::format("is not a whole number from 0 to {} or a percentage", max_service_replicas));
  }

  void read_rollout() {
    const Json& strategy = object_at(metadata_, "rolling_strategy");
    read_allowance(strategy, "max_surge", out_.service.spec.update.max_surge);
    read_allowance(strategy, "max_unavailable", out_.service.spec.update.max_unavailable);
    const Json& eas = object_at(metadata_, "eas");
    const auto grace = eas.find("termination_grace_period");
    if (grace == eas.end() || grace->is_null()) return;
    if (grace->is_number_unsigned() && grace->get<uint64_t>() <= max_grace_seconds)
      out_.service.spec.termination_grace_period_seconds = grace->get<uint32_t>();
    else
      error("metadata.eas.termination_grace_period", &*grace,
            fmt::format("is not a whole number of seconds from 0 to {}", max_grace_seconds));
  }

  void warn_of_others(const Json& object, const std::string& prefix,
                      std::initializer_list<const char*> read) {
    for (const auto& [key, value] : object.items())
      if (std::ranges::find(read, key) == read.end())
        warn(fmt::format("{}{}: has no effect here", prefix, key.substr(0, 60)));
  }

  void warn_of_fields() {
    warn_of_others(document_, "", {"metadata", "containers", "cloud", "name"});
    warn_of_others(metadata_, "metadata.",
                   {"name", "instance", "resource", "cpu", "memory", "gpu", "gpu_memory",
                    "gpu_core_percentage", "rolling_strategy", "eas"});
  }

  const Json& document_;
  const EasContext& context_;
  Json metadata_;
  EasService out_;
  FieldErrors errors_;
};

}  // namespace

Result<EasService, FieldErrors> from_eas(std::string_view text, const EasContext& context) {
  const auto json = api::parse(text);
  if (!json) return tl::unexpected(FieldErrors{{.field = "", .value = "", .sentence = json.error()}});
  return EasReader(*json, context).read(text);
}

Result<std::string, std::string> modified(std::string_view text, const std::vector<std::string>& changes) {
  auto json = api::parse(text);
  if (!json) return tl::unexpected(json.error());
  for (const std::string& change : changes) {
    const size_t equal = change.find('=');
    if (equal == std::string::npos || equal == 0)
      return tl::unexpected(
          fmt::format("'{}' is not FIELD=VALUE, such as metadata.instance=2", change.substr(0, 80)));
    Json* at = &*json;
    size_t begin = 0;
    while (begin < equal) {
      const size_t end = std::min(change.find('.', begin), equal);
      if (!at->is_object() && !at->is_null())
        return tl::unexpected(fmt::format("{}: {} is not an object", change.substr(0, equal),
                                          change.substr(0, begin == 0 ? 0 : begin - 1)));
      at = &(*at)[change.substr(begin, end - begin)];
      begin = end + 1;
    }
    const std::string value = change.substr(equal + 1);
    uint64_t number = 0;
    const auto [end, failed] = std::from_chars(value.data(), value.data() + value.size(), number);
    const bool whole = failed == std::errc() && end == value.data() + value.size();
    *at = whole ? Json(number) : value == "true" || value == "false" ? Json(value == "true") : Json(value);
  }
  return json->dump();
}

}  // namespace carve::fronts
