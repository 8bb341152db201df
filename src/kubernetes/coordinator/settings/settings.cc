#include "kubernetes/coordinator/settings/settings.h"

#include <algorithm>

#include "objects/error_list.h"

namespace carve::kubernetes::coordinator {
namespace {

using objects::ErrorList;
using objects::typed;

constexpr size_t max_listed_words = 32;
constexpr size_t max_word_bytes = 253;  // Maximum length of a Kubernetes name.
constexpr size_t max_named_pods = 3;    // Limits the pods that a message lists.

// Splits "a, b" at commas.
std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> out;
  std::string word;
  for (const char c : text + ",") {
    if (c != ',' && c != ' ' && c != '\n') {
      word += c;
    } else if (!word.empty()) {
      out.push_back(std::exchange(word, {}));
    }
  }
  return out;
}

class SettingsReader {
 public:
  explicit SettingsReader(const SettingsData& data) : data_(data) {}

  Result<ClusterSettings, api::FieldErrors> run() {
    using Read = void (SettingsReader::*)(const std::string& key, const std::string& value);
    static const std::map<std::string, Read> keys{{"gpuMemoryUnit", &SettingsReader::read_unit},
                                                  {"gpuMemoryUnitWhenFree", &SettingsReader::read_when_free},
                                                  {"dialects", &SettingsReader::read_dialects},
                                                  {"sharing", &SettingsReader::read_sharing},
                                                  {"plainNvidiaGpu", &SettingsReader::read_plain},
                                                  {"initContainers", &SettingsReader::read_init},
                                                  {"strategy", &SettingsReader::read_strategy},
                                                  {"schedulers", &SettingsReader::read_schedulers},
                                                  {"runtimeClasses", &SettingsReader::read_classes}};
    for (const auto& [key, value] : data_) {
      if (const auto known = keys.find(key); known != keys.end()) {
        (this->*known->second)(key, value);
        continue;
      }
      std::string names;
      for (const auto& [name, read] : keys) names += (names.empty() ? "" : ", ") + name;
      errors_.add_message(key.substr(0, max_word_bytes), value,
                          fmt::format("unknown setting {}; the settings are {}", typed(key), names));
    }
    if (!errors_.empty()) return tl::unexpected(errors_.all());
    return out_;
  }

 private:
  // Returns whether the value is the second of the two. Rejects other values.
  std::optional<bool> second_of(const std::string& key, const std::string& value, const char* first,
                                const char* second) {
    if (value == first) return false;
    if (value == second) return true;
    refuse(key, value, fmt::format("must be {} or {}", first, second));
    return std::nullopt;
  }
  void refuse(const std::string& key, const std::string& value, const std::string& rule) {
    errors_.add_message(key, value, fmt::format("{} {}: {}", key, value.substr(0, 60), rule));
  }

  std::optional<MemoryUnit> unit(const std::string& key, const std::string& value) {
    const auto out = parse<MemoryUnit>(value);
    if (!out) refuse(key, value, fmt::format("must be {}", choice(Words<MemoryUnit>::words)));
    return out;
  }
  void read_unit(const std::string& key, const std::string& value) {
    if (const auto read = unit(key, value)) out_.unit = *read;
  }
  void read_when_free(const std::string& key, const std::string& value) {
    if (value.empty()) return;
    out_.when_free = unit(key, value);
  }
  void read_dialects(const std::string& key, const std::string& value) {
    out_.dialects.clear();
    for (const std::string& word : words_of(value)) {
      const auto dialect = parse<dialects::Dialect>(word);
      if (!dialect || *dialect == dialects::Dialect::nvidia)
        refuse(key, word, "must be a list of carve, ack, vke and hami, separated by commas");
      else
        out_.dialects.insert(*dialect);
    }
  }
  void read_sharing(const std::string& key, const std::string& value) {
    if (const auto read = second_of(key, value, "disabled", "enabled")) out_.is_sharing = *read;
  }
  void read_plain(const std::string& key, const std::string& value) {
    if (const auto read = second_of(key, value, "ignore", "whole")) out_.plain_nvidia_is_whole = *read;
  }
  void read_init(const std::string& key, const std::string& value) {
    if (const auto read = second_of(key, value, "refuse", "share")) out_.init_containers_share = *read;
  }
  void read_strategy(const std::string& key, const std::string& value) {
    if (const auto read = parse<Strategy>(value))
      out_.strategy = *read;
    else
      refuse(key, value, fmt::format("must be {}", choice(Words<Strategy>::words)));
  }
  std::vector<std::string> names(const std::string& key, const std::string& value) {
    auto out = words_of(value);
    if (out.size() > max_listed_words)
      refuse(key, value, fmt::format("must have at most {} names", max_listed_words));
    for (const std::string& name : out)
      if (name.size() > max_word_bytes ||
          name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-.") != name.npos)
        refuse(key, name, "a name may contain only a to z, 0 to 9, '-' and '.'");
    return out;
  }
  void read_schedulers(const std::string& key, const std::string& value) {
    out_.schedulers = names(key, value);
    if (out_.schedulers.empty()) refuse(key, value, "must name at least one, such as carve-scheduler");
  }
  void read_classes(const std::string& key, const std::string& value) {
    out_.runtime_classes = names(key, value);
  }

  const SettingsData& data_;
  ClusterSettings out_;
  ErrorList errors_;
};

const std::vector<std::string>& pods_in(MemoryUnit unit, const PodsInUnits& pods) {
  static const std::vector<std::string> none;
  const auto found = pods.find(size_of(unit).count);
  return found == pods.end() ? none : found->second;
}

std::string spaced(MemoryUnit unit) { return unit == MemoryUnit::gib ? "1 GiB" : "128 MiB"; }

struct PendingSetting {
  std::string desired, effective;
  std::vector<std::string> blocked_by;
};
struct PendingSettings {
  uint32_t v = 1;
  PendingSetting gpu_memory_unit;
};
[[maybe_unused]] constexpr void has_camel_case_fields(const PendingSettings&) {}

}  // namespace

Result<ClusterSettings, api::FieldErrors> read_settings(const SettingsData& data) {
  return SettingsReader(data).run();
}

std::map<std::string, std::string> setting_texts(const ClusterSettings& settings) {
  const auto listed = [](const auto& values, auto text_of) {
    std::string out;
    for (const auto& value : values) out += (out.empty() ? "" : ", ") + std::string(text_of(value));
    return out;
  };
  const auto same = [](const std::string& word) { return word; };
  return {{"gpuMemoryUnit", std::string(text(settings.unit))},
          {"gpuMemoryUnitWhenFree", settings.when_free ? std::string(text(*settings.when_free)) : ""},
          {"dialects", listed(settings.dialects, [](dialects::Dialect dialect) { return text(dialect); })},
          {"sharing", settings.is_sharing ? "enabled" : "disabled"},
          {"plainNvidiaGpu", settings.plain_nvidia_is_whole ? "whole" : "ignore"},
          {"initContainers", settings.init_containers_share ? "share" : "refuse"},
          {"strategy", std::string(text(settings.strategy))},
          {"schedulers", listed(settings.schedulers, same)},
          {"runtimeClasses", listed(settings.runtime_classes, same)}};
}

dialects::PodSettings pod_settings(const ClusterSettings& settings, std::vector<std::string> models) {
  return {.unit = settings.unit,
          .dialects = settings.dialects,
          .plain_nvidia_is_whole = settings.plain_nvidia_is_whole,
          .models = std::move(models),
          .has_other_makers = true,
          .schedulers = settings.schedulers,
          .init_containers_share = settings.init_containers_share,
          .runtime_classes = settings.runtime_classes};
}

api::FieldErrors refuse_change(const ClusterSettings& before, const ClusterSettings& after,
                               const PodsInUnits& pods) {
  if (before.unit == after.unit) return {};
  const auto& names = pods_in(before.unit, pods);
  if (names.empty()) return {};
  std::string named;
  for (size_t i = 0; i < std::min(names.size(), max_named_pods); ++i)
    named += (i == 0 ? "" : ", ") + names[i];
  if (names.size() > max_named_pods) named += ", ...";
  return {
      {.field = "gpuMemoryUnit",
       .value = std::string(text(after.unit)),
       .message = fmt::format("gpuMemoryUnit stays {}: {} pod{} {} created with units of {}: {}; delete {}, "
                              "or set gpuMemoryUnitWhenFree",
                              text(before.unit), names.size(), names.size() == 1 ? "" : "s",
                              names.size() == 1 ? "was" : "were", spaced(before.unit), named,
                              names.size() == 1 ? "it" : "them")}};
}

std::optional<UnitChange> pending_unit(const ClusterSettings& settings, const PodsInUnits& pods) {
  if (!settings.when_free) return std::nullopt;
  UnitChange out{.effective = settings.unit, .desired = *settings.when_free, .blocked_by = {}};
  if (out.desired != out.effective) out.blocked_by = pods_in(settings.unit, pods);
  return out;
}

std::string pending_text(const UnitChange& change) {
  constexpr size_t max_listed_pods = 50;  // Keeps the annotation small.
  std::vector<std::string> pods = change.blocked_by;
  pods.resize(std::min(pods.size(), max_listed_pods));
  return api::write(PendingSettings{.gpu_memory_unit = {.desired = std::string(text(change.desired)),
                                                        .effective = std::string(text(change.effective)),
                                                        .blocked_by = std::move(pods)}});
}

}  // namespace carve::kubernetes::coordinator
