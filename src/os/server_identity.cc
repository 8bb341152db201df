#include "os/server_identity.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <sstream>

#include "os/process.h"
#include "os/user.h"

namespace carve::os {
namespace {

// A line of the map has the form "FIRST FIRST-OUTSIDE COUNT".
bool is_mapped(const std::string& uid_map, uint32_t uid) {
  std::istringstream lines(uid_map);
  for (uint64_t first = 0, outside = 0, count = 0; lines >> first >> outside >> count;)
    if (uid >= first && uid - first < count) return true;
  return false;
}

bool is_in_first_namespace(const std::string& uid_map) {
  std::istringstream line(uid_map);
  uint64_t first = 0, outside = 0, count = 0;
  return uid_map.empty() || ((line >> first >> outside >> count) && first == outside && count >= UINT32_MAX);
}

bool is_listed(std::string_view list, uint32_t uid) {
  while (!list.empty()) {
    const std::string_view word = list.substr(0, list.find(','));
    list.remove_prefix(std::min(word.size() + 1, list.size()));
    uint32_t listed = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), listed);
    if (error == std::errc() && end == word.data() + word.size() && listed == uid) return true;
  }
  return false;
}

}  // namespace

bool is_trusted(const ServerCredentials& server, const ClientUids& client) {
  if (server.uid == 0 || server.uid == client.effective) return true;
  if (server.uid == client.service) return true;
  if (is_listed(client.trusted, server.uid)) return true;
  // A user of the namespace may have the overflow uid as its own, but its processes are in the pid namespace
  // too.
  return server.uid == client.overflow && !is_in_first_namespace(client.uid_map) &&
         (server.pid == 0 || !is_mapped(client.uid_map, server.uid));
}

std::optional<uint32_t> untrusted_server(int socket, const char* service_user) {
  ucred server{};
  socklen_t size = sizeof server;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &server, &size) != 0) return UINT32_MAX;
  const ServerCredentials credentials{.uid = server.uid, .pid = server.pid};
  ClientUids client{.effective = geteuid(), .uid_map = {}, .service = {}, .trusted = {}};
  if (is_trusted(credentials, client)) return std::nullopt;  // Nearly always; the rest reads files.
  if (service_user != nullptr) client.service = user_id(service_user);
  const char* listed = std::getenv(trusted_uids_variable);
  client.trusted = listed != nullptr ? listed : "";
  client.uid_map = read_file("/proc/self/uid_map").value_or("");
  client.overflow = static_cast<uint32_t>(
      std::strtoul(read_file("/proc/sys/kernel/overflowuid").value_or("65534").c_str(), nullptr, 10));
  return is_trusted(credentials, client) ? std::nullopt : std::optional(server.uid);
}

std::string distrust_message(uint32_t uid) {
  const std::string name = user_name(uid);
  return fmt::format("uid {}{}, which is neither root nor this user; set {}={} to trust it", uid,
                     name == std::to_string(uid) ? "" : " (" + name + ")", trusted_uids_variable, uid);
}

}  // namespace carve::os
