#include "http/message.h"

#include <algorithm>

namespace carve::http {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool equal_without_case(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, {}, lower, lower);
}

bool is_token_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("-._~+/=").find(c) != std::string_view::npos;
}

}  // namespace

void Headers::add(std::string name, std::string value) {
  all_.push_back({std::move(name), std::move(value)});
}

const std::string* Headers::find(std::string_view name) const {
  const auto found =
      std::ranges::find_if(all_, [&](const Header& h) { return equal_without_case(h.name, name); });
  return found != all_.end() ? &found->value : nullptr;
}

size_t Headers::count(std::string_view name) const {
  return static_cast<size_t>(
      std::ranges::count_if(all_, [&](const Header& h) { return equal_without_case(h.name, name); }));
}

std::optional<std::string_view> bearer_token(const Headers& headers) {
  constexpr std::string_view scheme = "bearer ";
  if (headers.count("Authorization") != 1) return std::nullopt;
  std::string_view value = *headers.find("Authorization");
  if (!equal_without_case(value.substr(0, scheme.size()), scheme)) return std::nullopt;
  value.remove_prefix(scheme.size());
  value.remove_prefix(std::min(value.find_first_not_of(' '), value.size()));
  if (value.empty() || !std::ranges::all_of(value, is_token_character)) return std::nullopt;
  return value;
}

}  // namespace carve::http
