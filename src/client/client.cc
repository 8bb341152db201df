#include "client/client.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/version.hpp>
#include <chrono>
#include <cstdlib>
#include <limits>

#include "client/server_socket.h"
#include "wire/api/warning.h"

namespace carve::client {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using Stream = beast::basic_stream<asio::local::stream_protocol>;

constexpr auto watch_patience =
    std::chrono::seconds(45);  // Three times the interval of the comments that the agent sends.
constexpr size_t max_response_bytes = 16 << 20;
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

// Sends and receives. Each step begins only if the previous step succeeded.
boost::system::error_code exchange(const os::Fd& connection, const http::request<http::string_body>& request,
                                   std::chrono::steady_clock::time_point deadline,
                                   http::response_parser<http::dynamic_body>& response) {
  asio::io_context context(1);
  Stream stream(context);
  beast::flat_buffer buffer;
  boost::system::error_code result;
  const auto received = [&](boost::system::error_code error, size_t) { result = error; };
  const auto sent = [&](boost::system::error_code error, size_t) {
    result = error;
    if (!error) http::async_read(stream, buffer, response, received);
  };
  take(stream, connection);
  stream.expires_at(deadline);
  http::async_write(stream, request, sent);
  context.run();
  return result;
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

using StringRequest = http::request<http::string_body>;
using Parser = http::response_parser<http::dynamic_body>;

StringRequest request_of(std::string_view method, std::string_view target) {
  StringRequest request;
  request.method_string(beast::string_view(method.data(), method.size()));
  request.target(beast::string_view(target.data(), target.size()));
  request.version(11);
  request.set(http::field::host, "carve");
  request.set(http::field::connection, "close");
  return request;
}

std::vector<std::string> warnings_of(const http::fields& header) {
  std::vector<std::string> out;
  const auto [first, last] = header.equal_range(http::field::warning);
  for (auto line = first; line != last; ++line)
    if (auto text = api::warning_text({line->value().data(), line->value().size()}))
      out.push_back(std::move(*text));
  return out;
}

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

// Returns the problem that is in the agent's response.
api::Problem refusal(std::string_view method, std::string_view target, unsigned status,
                     const std::string& text) {
  auto problem = api::read<api::Problem>(text, api::Reading::lenient);
  if (problem && !problem->detail.empty()) return *problem;
  return {.title = "refused",
          .status = status,
          .detail = fmt::format("the agent refused {} {} with status {}", method, target, status)};
}

// One watch: sends the request, and reads until the stream ends or nothing arrives for too long.
struct Watch {
  const StringRequest& request;
  const std::function<void(const StreamEvent&)>& act;
  std::chrono::seconds patience;
  asio::io_context context{1};
  Stream stream{context};
  beast::flat_buffer buffer;
  Parser response;
  EventStreamReader reader;
  bool opened = false;
  boost::system::error_code result;

  Watch(const StringRequest& what, const std::function<void(const StreamEvent&)>& then,
        std::chrono::seconds longest)
      : request(what), act(then), patience(longest) {
    response.body_limit(max_response_bytes);
  }
  void run(const os::Fd& connection) {
    take(stream, connection);
    stream.expires_after(patience);
    http::async_write(stream, request, [this](boost::system::error_code failed, size_t) {
      result = failed;
      if (!failed) read_some();
    });
    context.run();
  }
  void read_some() {
    http::async_read_some(stream, buffer, response, [this](boost::system::error_code error, size_t) {
      result = error;
      if (!error) received();
    });
  }
  void received() {
    const bool begins = !opened && response.get().result_int() == 200 &&
                        response.get()[http::field::content_type] == "text/event-stream";
    if (begins) response.body_limit(std::numeric_limits<uint64_t>::max());
    opened = opened || begins;
    if (opened) {
      auto& body = response.get().body();
      const std::string bytes = beast::buffers_to_string(body.data());
      body.consume(body.size());
      if (!reader.read(bytes, act)) {
        result = http::error::body_limit;
        return;
      }
    }
    if (response.is_done()) return;
    stream.expires_after(opened ? watch_patience : patience);
    read_some();
  }
};

}  // namespace

Answer<RawAnswer> Client::ask(std::string_view method, std::string_view target, const std::string& body,
                              const RequestHeaders& headers) const {
  const auto deadline = std::chrono::steady_clock::now() + settings_.patience;
  auto connection = connect_to_server(socket_, settings_);
  if (!connection) return tl::unexpected(std::move(connection.error()));
  StringRequest request = request_of(method, target);
  if (!body.empty()) request.set(http::field::content_type, "application/json");
  if (!headers.accept.empty())
    request.set(http::field::accept, boost::string_view(headers.accept.data(), headers.accept.size()));
  if (!headers.version.empty())
    request.set(http::field::if_match, beast::string_view(fmt::format("\"{}\"", headers.version)));
  request.body() = body;
  request.prepare_payload();

  // A string body would reserve Content-Length bytes before the limit is checked (Boost 1.74).
  Parser response;
  response.body_limit(max_response_bytes);
  if (const auto error = exchange(*connection, request, deadline, response))
    return tl::unexpected(lost(socket_, error, settings_.patience, settings_));
  const auto type = response.get()[http::field::content_type];
  return RawAnswer{.status = response.get().result_int(),
                   .type = std::string(type.data(), type.size()),
                   .body = beast::buffers_to_string(response.get().body().data()),
                   .warnings = warnings_of(response.get())};
}

Answer<std::string> Client::call(std::string_view method, std::string_view target, const std::string& body,
                                 const RequestHeaders& headers) const {
  auto answer = ask(method, target, body, headers);
  if (!answer) return tl::unexpected(answer.error());
  if (settings_.warn)
    for (const std::string& warning : answer->warnings) settings_.warn(warning);
  if (answer->status / 100 == 2) return std::move(answer->body);
  return tl::unexpected(refusal(method, target, answer->status, answer->body));
}

WatchEnd Client::watch(std::string_view target, const std::string& last_id,
                       const std::function<void(const StreamEvent&)>& act) const {
  auto connection = connect_to_server(socket_, settings_);
  if (!connection) return {std::move(connection.error())};
  StringRequest request = request_of("GET", target);
  request.set(http::field::accept, "text/event-stream");
  if (!last_id.empty()) request.set("Last-Event-ID", last_id);
  Watch watch(request, act, settings_.patience);
  watch.run(*connection);
  if (watch.result)
    return {lost(socket_, watch.result, watch.opened ? watch_patience : settings_.patience, settings_),
            watch.opened};
  if (watch.opened) return {lost(socket_, http::error::end_of_stream, watch_patience, settings_), true};
  return {refusal("GET", target, watch.response.get().result_int(),
                  beast::buffers_to_string(watch.response.get().body().data()))};
}

}  // namespace carve::client
