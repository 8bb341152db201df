#include "client/client.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/local/stream_protocol.hpp>
#include <chrono>
#include <cstdlib>

#include "client/exchange.h"
#include "client/server_socket.h"

namespace carve::client {
namespace {

using Stream = beast::basic_stream<asio::local::stream_protocol>;

constexpr const char* local_host = "carve";  // The Host header of requests to a unix socket.
constexpr const char* machine_socket = "/run/carve/carved.sock";

bool exists(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0;
}

// Gives the stream its own copy of the connection's descriptor.
void take(Stream& stream, const os::Fd& connection) {
  const int fd = fcntl(connection.get(), F_DUPFD_CLOEXEC, 0);
  boost::system::error_code error;  // If there is no descriptor, the next step fails.
  if (fd >= 0) stream.socket().assign(asio::local::stream_protocol(), fd, error);
}

// Returns whether only this user can change the folder, so that no other user has put a socket there.
bool is_private(const std::string& folder) {
  struct stat info {};
  return lstat(folder.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == geteuid() &&
         (info.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

}  // namespace

std::string find_socket(const std::string& flag) {
  if (!flag.empty()) return flag;
  if (const char* named = std::getenv("CARVE_SOCKET"); named != nullptr && *named != '\0') return named;
  const std::string machine = machine_socket;
  if (geteuid() == 0 || access(machine.c_str(), W_OK) == 0) return machine;
  std::string first;
  const auto found = [&](const std::string& path) {
    if (first.empty()) first = path;
    return exists(path);
  };
  if (const char* runtime = std::getenv("XDG_RUNTIME_DIR"); runtime != nullptr && *runtime != '\0') {
    const std::string path = std::string(runtime) + "/carve/carved.sock";
    if (found(path)) return path;
  }
  // Any user can create a folder in /tmp, including one with this name.
  const std::string folder = fmt::format("/tmp/carve-{}", geteuid());
  if (found(folder + "/carved.sock") && is_private(folder)) return folder + "/carved.sock";
  return exists(machine) ? machine : first;
}

std::string find_controller_socket(const std::string& flag) {
  if (!flag.empty()) return flag;
  if (const char* named = std::getenv("CARVE_CONTROLLER"); named != nullptr && *named != '\0') return named;
  const std::string agent = find_socket("");
  const size_t slash = agent.rfind('/');
  return slash == std::string::npos ? "controller.sock" : agent.substr(0, slash) + "/controller.sock";
}

namespace {

// Returns the problem of an exchange that failed. `waited` is the time after which the client gave up.
api::Problem lost(const std::string& socket, const boost::system::error_code& error,
                  std::chrono::seconds waited, const Settings& settings) {
  if (error == beast::error::timeout) return no_response(socket, waited);
  if (error.category() == boost::system::system_category())
    return unreachable(socket, error.value(), settings);
  return {.type = "carve:no-response",
          .title = "no response",
          .status = 502,
          .detail = fmt::format("the agent at {} closed the connection: {}", socket, error.message())};
}

}  // namespace

api::Problem refusal(std::string_view method, std::string_view target, const RawAnswer& answer) {
  auto problem = api::read<api::Problem>(answer.body, api::Reading::lenient);
  if (problem && !problem->detail.empty()) return *problem;
  return {.title = "refused",
          .status = answer.status,
          .detail = fmt::format("the agent refused {} {} with status {}", method, target, answer.status)};
}

Answer<RawAnswer> Client::ask(std::string_view method, std::string_view target, const std::string& body,
                              const RequestHeaders& headers) const {
  if (remote_) return remote_->ask(method, target, body, headers);
  const auto deadline = std::chrono::steady_clock::now() + settings_.patience;
  auto connection = connect_to_server(socket_, settings_);
  if (!connection) return tl::unexpected(std::move(connection.error()));
  StringRequest request = request_of(method, target, local_host);
  set_body(request, body, headers);

  // A string body would reserve Content-Length bytes before the limit is checked (Boost 1.74).
  Parser response;
  response.body_limit(max_response_bytes);
  asio::io_context context(1);
  Stream stream(context);
  take(stream, *connection);
  if (const auto error = exchange(context, stream, request, deadline, response))
    return tl::unexpected(lost(socket_, error, settings_.patience, settings_));
  return answer_of(response);
}

Answer<std::string> Client::call(std::string_view method, std::string_view target, const std::string& body,
                                 const RequestHeaders& headers) const {
  auto answer = ask(method, target, body, headers);
  if (!answer) return tl::unexpected(answer.error());
  if (settings_.warn)
    for (const std::string& warning : answer->warnings) settings_.warn(warning);
  if (answer->status / 100 == 2) return std::move(answer->body);
  return tl::unexpected(refusal(method, target, *answer));
}

WatchEnd Client::watch(std::string_view target, const std::string& last_id,
                       const std::function<void(const StreamEvent&)>& act) const {
  if (remote_) return remote_->watch(target, last_id, act);
  auto connection = connect_to_server(socket_, settings_);
  if (!connection) return {std::move(connection.error())};
  StringRequest request = request_of("GET", target, local_host);
  request.set(http::field::accept, "text/event-stream");
  if (!last_id.empty()) request.set("Last-Event-ID", last_id);
  asio::io_context context(1);
  Stream stream(context);
  take(stream, *connection);
  Watch<Stream> watch{context, stream, request, act, settings_.patience};
  watch.run();
  if (watch.result)
    return {lost(socket_, watch.result, watch.opened ? watch_patience : settings_.patience, settings_),
            watch.opened};
  if (watch.opened) return {lost(socket_, http::error::end_of_stream, watch_patience, settings_), true};
  return {refusal("GET", target, answer_of(watch.response))};
}

}  // namespace carve::client
