#include "wire/api/warning.h"

namespace carve::api {
namespace {

constexpr std::string_view prefix = "299 - \"";  // A persistent warning from an unnamed agent.

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

}  // namespace

std::string warning_value(std::string_view text) {
  std::string out(prefix);
  for (const char c : text.substr(0, max_warning_bytes)) {
    if (c == '"' || c == '\\') out += '\\';
    out += is_control(c) ? ' ' : c;
  }
  return out + '"';
}

std::optional<std::string> warning_text(std::string_view value) {
  if (!value.starts_with(prefix)) return std::nullopt;
  value.remove_prefix(prefix.size());
  std::string out;
  for (size_t i = 0; i < value.size() && out.size() < max_warning_bytes; ++i) {
    if (value[i] == '"') return out;
    if (value[i] == '\\' && ++i == value.size()) return std::nullopt;
    out += value[i];
  }
  return out.size() == max_warning_bytes ? std::optional(out) : std::nullopt;
}

}  // namespace carve::api
