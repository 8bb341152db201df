#include "wire/api/exposition.h"

#include <fmt/format.h>

namespace carve::api {
namespace {

std::string escaped(std::string_view text, bool quotes) {
  std::string out;
  for (const char c : text) {
    if (c == '\n') {
      out += "\\n";
      continue;
    }
    if (c == '\\' || (quotes && c == '"')) out += '\\';
    out += c;
  }
  return out;
}

}  // namespace

void Exposition::family(std::string_view name, std::string_view type, std::string_view help) {
  name_ = name;
  head_ = fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, escaped(help, false), name, type);
}

void Exposition::sample(const Labels& labels, std::string_view value) {
  text_ += std::exchange(head_, {});
  std::string said;
  for (const auto& [key, word] : labels)
    said += fmt::format("{}{}=\"{}\"", said.empty() ? "" : ",", key, escaped(word, true));
  text_ +=
      said.empty() ? fmt::format("{} {}\n", name_, value) : fmt::format("{}{{{}}} {}\n", name_, said, value);
}

std::string seconds_of(uint64_t ns) {
  return fmt::format("{}.{:09}", ns / 1'000'000'000, ns % 1'000'000'000);
}
std::string ratio_of(uint64_t bp) { return fmt::format("{}.{:04}", bp / 10000, bp % 10000); }

}  // namespace carve::api
