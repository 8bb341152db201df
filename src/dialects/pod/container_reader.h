// Reads a container of a pod for a dialect: its limits, and the labels and annotations of its pod. Errors are
// collected in a list, so that a reader continues and finds all errors of a pod.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dialects/json_reader.h"
#include "dialects/pod/pod_settings.h"

namespace carve::dialects {

// The parts of a pod that define a container's request.
struct PodParts {
  JsonMember labels;
  JsonMember annotations;
  size_t containers = 1;
};
struct ContainerParts {
  std::string name;
  size_t index = 0;  // Index among the pod's containers.
  JsonMember limits;
  JsonMember requests;
};

// The valid range of a quantity.
struct CountRange {
  uint64_t low = 0;
  uint64_t high = 0;
  uint64_t step = 1;
  std::string text;         // The range as a message shows it; "LOW to HIGH" if empty.
  std::string unit = "";    // The counted unit, such as "MiB".
  uint64_t unit_bytes = 0;  // Bytes per unit; 0 if unknown or not an amount of memory.
};

class ContainerReader {
 public:
  ContainerReader(JsonReader& json, objects::ErrorList& errors, const PodSettings& settings,
                  const PodParts& pod, const ContainerParts& container)
      : json_(json), errors_(errors), settings_(settings), pod_(pod), container_(container) {}

  const PodSettings& settings() const { return settings_; }
  const ContainerParts& container() const { return container_; }
  size_t containers() const { return pod_.containers; }

  bool has_limit(const char* key) const;
  // Returns the limit. Kubernetes rejects a request for these resources that differs from its limit.
  JsonMember limit(const char* key);
  JsonMember label(const char* key) { return json_.named(pod_.labels, key); }
  JsonMember annotation(const char* key) { return json_.named(pod_.annotations, key); }
  // Return the pod's annotations, or the container's limits, whose keys have this prefix.
  std::vector<std::pair<std::string, JsonMember>> annotations_with(std::string_view prefix);
  std::vector<std::pair<std::string, JsonMember>> limits_with(std::string_view prefix);
  std::string text(const JsonMember& member) { return json_.text(member); }

  // Returns a quantity such as 16 or "16" if it is in the range. Returns no value if it is missing or after
  // an error. `name` starts the message. A suffix of bytes, as in 512Mi, is an error. The suffix k is
  // allowed, because the API server writes 2000 as 2k.
  std::optional<uint64_t> count(const JsonMember&, std::string_view name, const CountRange&);
  // Returns the whole number in the text of a label or annotation, or no value if it is outside the range.
  static std::optional<uint64_t> number(std::string_view text, uint64_t low, uint64_t high);
  // Returns the enumerator for a word, or no value if the member is missing or after an error.
  template <Worded E>
  std::optional<E> word(const JsonMember& member, std::string_view name) {
    if (!member) return std::nullopt;
    const std::string given = text(member);
    const auto value = parse<E>(given);
    if (!value) refuse(member, "{}: {}; must be {}", name, given.substr(0, 40), choice(Words<E>::words));
    return value;
  }

  template <class... A>
  void refuse(const JsonMember& member, fmt::format_string<A...> form, A&&... values) {
    errors_.add_message(member.path, shown_json(*member.value),
                        fmt::format(form, std::forward<A>(values)...));
  }

 private:
  std::vector<std::pair<std::string, JsonMember>> members_with(const JsonMember& object,
                                                               std::string_view prefix);

  JsonReader& json_;
  objects::ErrorList& errors_;
  const PodSettings& settings_;
  const PodParts& pod_;
  const ContainerParts& container_;
};

}  // namespace carve::dialects
