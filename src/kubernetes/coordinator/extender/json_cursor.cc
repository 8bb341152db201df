#include "kubernetes/coordinator/extender/json_cursor.h"

#include <cstring>

namespace carve::kubernetes::coordinator {

bool JsonCursor::pass_text() {
  while (true) {
    const auto left = static_cast<size_t>(end_ - at_);
    const auto* const quote = static_cast<const char*>(std::memchr(at_, '"', left));
    if (quote == nullptr) return false;
    const auto length = static_cast<size_t>(quote - at_);
    const auto* const escape = static_cast<const char*>(std::memchr(at_, '\\', length));
    at_ = escape == nullptr ? quote + 1 : escape + 2;
    if (escape == nullptr) return true;
  }
}

std::optional<std::string_view> JsonCursor::value() {
  pass_space();
  const char* const begin = at_;
  size_t depth = 0;
  while (at_ != end_) {
    const char c = *at_;
    const bool is_end = c == '}' || c == ']';
    if (depth == 0 && (is_end || c == ',')) break;  // After a number or a literal.
    ++at_;
    if (c == '"' && !pass_text()) return std::nullopt;
    if (c == '{' || c == '[') ++depth;
    if (is_end) --depth;
    if (depth == 0 && (is_end || c == '"')) break;
  }
  if (depth != 0 || at_ == begin) return std::nullopt;
  return std::string_view(begin, static_cast<size_t>(at_ - begin));
}

}  // namespace carve::kubernetes::coordinator
