// The errors of one document. A sentence begins with its field, and at most api::max_field_errors are kept.
#pragma once

#include <string>
#include <utility>

#include "wire/api/json.h"

namespace carve::fronts {

class ErrorList {
 public:
  // Adds an error whose sentence is "FIELD: " and the formatted text. `value` is what the document has.
  template <class... A>
  void add(const std::string& field, const std::string& value, fmt::format_string<A...> form, A&&... values) {
    add_sentence(field, value, field + ": " + fmt::format(form, std::forward<A>(values)...));
  }
  // A field that is read more than once has each sentence once.
  void add_sentence(const std::string& field, const std::string& value, std::string sentence) {
    if (errors_.size() == api::max_field_errors) return;
    for (const api::FieldError& known : errors_)
      if (known.field == field && known.sentence == sentence) return;
    errors_.push_back(
        {.field = field, .value = value.substr(0, max_value_bytes), .sentence = std::move(sentence)});
  }
  void add_all(const api::FieldErrors& errors) {
    for (const api::FieldError& error : errors) add_sentence(error.field, error.value, error.sentence);
  }

  bool empty() const { return errors_.empty(); }
  const api::FieldErrors& all() const { return errors_; }

 private:
  static constexpr size_t max_value_bytes = 80;
  api::FieldErrors errors_;
};

// Returns what a user typed as it is shown in a sentence: in quotes, cut to a line.
inline std::string typed(const std::string& text) {
  return fmt::format("'{}'", text.size() > 60 ? text.substr(0, 57) + "..." : text);
}

}  // namespace carve::fronts
