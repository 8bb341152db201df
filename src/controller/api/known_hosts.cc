#include "controller/api/known_hosts.h"

#include <fmt/format.h>

#include <algorithm>

#include "controller/api/query.h"

namespace carve::controller {
namespace {

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return text;
}

// Returns the host of "host:port", "[::1]:port" or "host"; empty for any other form.
std::string host_of(const std::string& authority) {
  const bool is_bracketed = authority.starts_with('[');
  const size_t end = is_bracketed ? authority.find(']') : authority.find(':');
  if (is_bracketed && end == std::string::npos) return "";
  const std::string host = is_bracketed ? authority.substr(1, end - 1) : authority.substr(0, end);
  const size_t port = is_bracketed ? end + 1 : std::min(end, authority.size());
  if (port == authority.size()) return host;
  const std::string digits = authority.substr(port + 1);
  const bool has_port = authority[port] == ':' && !digits.empty() && digits.size() <= 5 &&
                        digits.find_first_not_of("0123456789") == std::string::npos;
  return has_port ? host : "";
}

}  // namespace

KnownHosts::KnownHosts(const std::vector<std::string>& more) : names_{"localhost", "127.0.0.1", "::1"} {
  for (const std::string& name : more) names_.insert(lower(name));
}

std::optional<std::string> KnownHosts::refusal(const http::Headers& headers) const {
  if (headers.count("Host") != 1) return "the request must have exactly one Host header";
  const std::string authority = lower(*headers.find("Host"));
  if (!names_.contains(host_of(authority)))
    return fmt::format(
        "Host '{}' is not a name of this controller; use the controller's address, or start it with --host "
        "NAME",
        authority.substr(0, max_shown_bytes));
  const std::string* origin = headers.find("Origin");
  if (origin == nullptr) return std::nullopt;
  const std::string own = lower(*origin);
  if (headers.count("Origin") == 1 && (own == "http://" + authority || own == "https://" + authority))
    return std::nullopt;
  return fmt::format("Origin '{}' is not this controller; only its own pages may call it from a browser",
                     origin->substr(0, max_shown_bytes));
}

}  // namespace carve::controller
