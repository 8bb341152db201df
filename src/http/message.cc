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

std::string_view framing_problem(const Headers& headers, bool is_http_11) {
  const std::string* coding = headers.find("Transfer-Encoding");
  if (coding != nullptr && !is_http_11) return "HTTP/1.0 does not support Transfer-Encoding";
  if (coding != nullptr &&
      (headers.count("Transfer-Encoding") > 1 || !equal_without_case(*coding, "chunked")))
    return "the Transfer-Encoding is not chunked";
  if (coding != nullptr && headers.find("Content-Length") != nullptr)
    return "Transfer-Encoding and Content-Length are mutually exclusive";
  const std::string* length = headers.find("Content-Length");
  if (length != nullptr && (headers.count("Content-Length") > 1 || length->empty() ||
                            length->find_first_not_of("0123456789") != std::string::npos))
    return "the Content-Length is not a single number";
  return {};
}

bool has_folded_line(std::string_view bytes) {
  const std::string_view header =
      bytes.starts_with("\r\n") ? std::string_view() : bytes.substr(0, bytes.find("\r\n\r\n"));
  return header.find("\n ") != std::string_view::npos || header.find("\n\t") != std::string_view::npos;
}

}  // namespace carve::http
