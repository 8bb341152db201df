// A container of a pod, as a dialect reads it: its limits, and the labels and annotations of its pod. What is
// wrong goes into the list of errors, so a reader continues and finds all errors of a pod.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fronts/json_reader.h"
#include "fronts/pod/pod_settings.h"

namespace carve::fronts {

// The parts of a pod that say what a container asks for.
struct PodParts {
  JsonMember labels;
  JsonMember annotations;
  size_t containers = 1;
};
struct ContainerParts {
  std::string name;
  size_t index = 0;  // Among the pod's containers.
  JsonMember limits;
  JsonMember requests;
};

// The numbers that a quantity may have.
struct CountRange {
  uint64_t low = 0;
  uint64_t high = 0;
  uint64_t step = 1;
  std::string text;  // As a sentence has it; empty: "LOW to HIGH".
};

class ContainerReader {
 public:
  ContainerReader(JsonReader& json, ErrorList& errors, const PodSettings& settings, const PodParts& pod,
                  const ContainerParts& container)
      : json_(json), errors_(errors), settings_(settings), pod_(pod), container_(container) {}

  const PodSettings& settings() const { return settings_; }
  const ContainerParts& container() const { return container_; }
  size_t containers() const { return pod_.containers; }

  bool has_limit(const char* key) const;
  // Returns the limit. Kubernetes refuses a request of these resources that is not its limit.
  JsonMember limit(const char* key);
  JsonMember label(const char* key) { return json_.named(pod_.labels, key); }
  JsonMember annotation(const char* key) { return json_.named(pod_.annotations, key); }
  // Return the pod's annotations, or the container's limits, whose keys begin so.
  std::vector<std::pair<std::string, JsonMember>> annotations_with(std::string_view prefix);
  std::vector<std::pair<std::string, JsonMember>> limits_with(std::string_view prefix);
  std::string text(const JsonMember& member) { return json_.text(member); }

  // Returns a quantity, 16 or "16", of the range; no value: there is none, or an error. `name` begins the
  // sentence.
  std::optional<uint64_t> count(const JsonMember&, std::string_view name, const CountRange&);
  // Returns the whole number that a label or annotation has as its text; no value: it is none of the range.
  static std::optional<uint64_t> number(std::string_view text, uint64_t low, uint64_t high);
  // Returns the value of a word; no value: there is none, or an error.
  template <Worded E>
  std::optional<E> word(const JsonMember& member, std::string_view name) {
    if (!member) return std::nullopt;
    const std::string given = text(member);
    const auto value = parse<E>(given);
    if (!value) refuse(member, "{}: {}; it is {}", name, given.substr(0, 40), choice(Words<E>::words));
    return value;
  }

  template <class... A>
  void refuse(const JsonMember& member, fmt::format_string<A...> form, A&&... values) {
    errors_.add_sentence(member.path, shown_json(*member.value),
                         fmt::format(form, std::forward<A>(values)...));
  }

 private:
  std::vector<std::pair<std::string, JsonMember>> members_with(const JsonMember& object,
                                                               std::string_view prefix);

  JsonReader& json_;
  ErrorList& errors_;
  const PodSettings& settings_;
  const PodParts& pod_;
  const ContainerParts& container_;
};

}  // namespace carve::fronts
