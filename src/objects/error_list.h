// The errors of one document. A message starts with its field, and at most api::max_field_errors are kept.
#pragma once

#include <string>
#include <utility>

#include "wire/api/json.h"

namespace carve::objects {

class ErrorList {
 public:
  // Adds an error whose message is "FIELD: " and the formatted text. `value` is the document's value.
  template <class... A>
  void add(const std::string& field, const std::string& value, fmt::format_string<A...> form, A&&... values) {
    add_message(field, value, field + ": " + fmt::format(form, std::forward<A>(values)...));
  }
  // Adds a message once, even if the field is checked more than once.
  void add_message(const std::string& field, const std::string& value, std::string message) {
    if (errors_.size() == api::max_field_errors) return;
    for (const api::FieldError& known : errors_)
      if (known.field == field && known.message == message) return;
    errors_.push_back(
        {.field = field, .value = value.substr(0, max_value_bytes), .message = std::move(message)});
  }
  void add_all(const api::FieldErrors& errors) {
    for (const api::FieldError& error : errors) add_message(error.field, error.value, error.message);
  }

  bool empty() const { return errors_.empty(); }
  const api::FieldErrors& all() const { return errors_; }

 private:
  static constexpr size_t max_value_bytes = 80;
  api::FieldErrors errors_;
};

// Returns a user's text for a message: in quotes and cut to one line.
inline std::string typed(const std::string& text) {
  return fmt::format("'{}'", text.size() > 60 ? text.substr(0, 57) + "..." : text);
}

}  // namespace carve::objects
