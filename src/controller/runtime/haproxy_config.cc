#include "controller/runtime/haproxy_config.h"

#include <algorithm>
#include <charconv>
#include <map>

namespace carve::controller {
namespace {

std::vector<std::string> split(std::string_view line, char separator) {
  std::vector<std::string> out;
  for (size_t begin = 0; begin <= line.size();) {
    const size_t end = std::min(line.find(separator, begin), line.size());
    out.emplace_back(line.substr(begin, end - begin));
    begin = end + 1;
  }
  return out;
}

uint32_t number(const std::string& text) {
  uint32_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

}  // namespace

std::string endpoint_name(uint32_t port) { return fmt::format("endpoint-{}", port); }

std::string haproxy_config(const std::vector<ServiceEndpoint>& endpoints, const std::string& admin_socket) {
  std::string out = fmt::format(
      "global\n"
      "    stats socket {} mode 600 level admin expose-fd listeners\n"
      "    hard-stop-after 10m\n"
      // A worker that ends after a reload closes a client's connection with its next answer, not between two
      // requests: closed at once, 61 of 279,000 requests that clients do not repeat were lost in 80 reloads.
      "    close-spread-time infinite\n"
      "defaults\n"
      "    mode http\n"
      // A connection to a replica has one request: a replica may close an idle one at any moment.
      "    option http-server-close\n"
      "    option redispatch\n"
      "    retries 3\n"
      "    retry-on conn-failure\n"
      "    timeout connect 1s\n"
      "    timeout client 60s\n"
      "    timeout http-request 30s\n"
      "    timeout queue 30s\n"
      "    timeout server 10m\n"  // A model may compute for minutes before its first byte.
      "    timeout tunnel 1h\n",
      admin_socket);
  for (const ServiceEndpoint& endpoint : endpoints) {
    const std::string name = endpoint_name(endpoint.port);
    out += fmt::format(
        "frontend {0}\n"
        "    bind 127.0.0.1:{1}\n"
        "    http-after-response set-header Connection close if {{ stopping }}\n"
        "    default_backend {0}\n"
        "backend {0}\n"
        "    balance leastconn\n",
        name, endpoint.port);
    for (const EndpointServer& server : endpoint.servers)
      out += fmt::format("    server {} 127.0.0.1:{}\n", server.slice, server.port);
  }
  return out;
}

std::vector<SeenServer> parse_servers(const std::string& csv) {
  std::vector<SeenServer> out;
  std::map<std::string, size_t> column;
  for (const std::string& line : split(csv, '\n')) {
    if (line.starts_with("# ")) {
      const auto names = split(std::string_view(line).substr(2), ',');
      for (size_t i = 0; i < names.size(); ++i) column[names[i]] = i;
      continue;
    }
    const auto cells = split(line, ',');
    const auto cell = [&](const char* name) -> std::string {
      const auto found = column.find(name);
      return found != column.end() && found->second < cells.size() ? cells[found->second] : "";
    };
    const std::string name = cell("svname");
    if (name.empty() || name == "FRONTEND" || name == "BACKEND") continue;
    const std::string status = cell("status");
    out.push_back({.backend = cell("pxname"),
                   .name = name,
                   .sessions = number(cell("scur")) + number(cell("qcur")),
                   .is_ready = !status.starts_with("DRAIN") && !status.starts_with("MAINT")});
  }
  return out;
}

std::vector<std::string> server_commands(const std::vector<ServiceEndpoint>& wanted,
                                         const std::vector<SeenServer>& seen) {
  std::vector<std::string> added, removed;
  std::map<std::string, uint32_t> missing;  // Port by "backend/server".
  for (const ServiceEndpoint& endpoint : wanted)
    for (const EndpointServer& server : endpoint.servers)
      missing[endpoint_name(endpoint.port) + "/" + server.slice] = server.port;
  for (const SeenServer& server : seen) {
    const std::string name = server.backend + "/" + server.name;
    if (missing.erase(name) > 0) {
      if (!server.is_ready) added.push_back(fmt::format("set server {} state ready", name));
    } else if (server.is_ready) {
      removed.push_back(fmt::format("set server {} state drain", name));
    } else if (server.sessions == 0) {
      removed.push_back(fmt::format("set server {} state maint", name));
      removed.push_back(fmt::format("del server {}", name));
    }
  }
  for (const auto& [name, port] : missing) {
    added.push_back(fmt::format("add server {} 127.0.0.1:{}", name, port));
    added.push_back(fmt::format("set server {} state ready", name));
  }
  // First those that come: at no moment is there no server.
  added.insert(added.end(), removed.begin(), removed.end());
  return added;
}

}  // namespace carve::controller
