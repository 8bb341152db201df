#include "client/client.h"

#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/version.hpp>
#include <cstdlib>
#include <cstring>

namespace carve::client {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using Stream = beast::basic_stream<asio::local::stream_protocol>;

constexpr auto patience = std::chrono::seconds(30);
constexpr size_t max_response_bytes = 16 << 20;
constexpr size_t max_socket_path_bytes = 107;  // sockaddr_un::sun_path, less its terminator.

bool exists(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0;
}

api::Problem unreachable(const std::string& socket, int error) {
  api::Problem problem{.type = "carve:no-agent", .title = "no agent", .status = 503};
  const auto say = [&](auto... part) { problem.detail = fmt::format(part...); };
  switch (error) {
    case ENOENT:
      say(fmt::runtime(
              "no agent listens at {}; start one with 'carved &', or 'carved --sim a10x2 &' without a "
              "GPU, or name another socket with --socket PATH or CARVE_SOCKET"),
          socket);
      break;
    case ECONNREFUSED:
      say(fmt::runtime("{} exists, but its agent has ended; start it again with 'carved --socket {} &'; "
                       "running slices are kept"),
          socket, socket);
      break;
    case EACCES: {
      const passwd* user = getpwuid(geteuid());
      say(fmt::runtime(
              "you may not open {}; it belongs to root and the group carve; run 'usermod -aG carve {}' "
              "and log in again, or run your own agent with 'carved &'"),
          socket, user != nullptr ? user->pw_name : "USER");
      break;
    }
    default: say(fmt::runtime("cannot reach the agent at {}: {}"), socket, std::strerror(error));
  }
  return problem;
}

// Connects, sends, receives. A step begins only if the previous one succeeded.
boost::system::error_code exchange(const std::string& socket, const http::request<http::string_body>& request,
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
  const auto connected = [&](boost::system::error_code error) {
    result = error;
    if (!error) http::async_write(stream, request, sent);
  };
  stream.expires_after(patience);
  stream.async_connect(asio::local::stream_protocol::endpoint(socket), connected);
  context.run();
  return result;
}

}  // namespace

std::string find_socket(const std::string& flag) {
  if (!flag.empty()) return flag;
  if (const char* named = std::getenv("CARVE_SOCKET"); named != nullptr && *named != '\0') return named;
  const std::string machine = "/run/carve/carved.sock";
  if (geteuid() == 0) return machine;
  std::string first;
  const auto found = [&](const std::string& path) {
    if (first.empty()) first = path;
    return exists(path);
  };
  if (const char* runtime = std::getenv("XDG_RUNTIME_DIR"); runtime != nullptr && *runtime != '\0') {
    const std::string path = std::string(runtime) + "/carve/carved.sock";
    if (found(path)) return path;
  }
  const std::string temporary = fmt::format("/tmp/carve-{}/carved.sock", geteuid());
  if (found(temporary)) return temporary;
  if (found(machine)) return machine;
  return first;
}

Answer<std::string> Client::call(std::string_view method, std::string_view target,
                                 const std::string& body) const {
  if (socket_.size() > max_socket_path_bytes)
    return tl::unexpected(api::Problem{
        .title = "bad socket path",
        .detail = fmt::format("{}: a unix socket's path has at most {} bytes, this one {}; use a shorter one",
                              socket_, max_socket_path_bytes, socket_.size())});
  http::request<http::string_body> request;
  request.method_string(beast::string_view(method.data(), method.size()));
  request.target(beast::string_view(target.data(), target.size()));
  request.version(11);
  request.set(http::field::host, "carve");
  request.set(http::field::connection, "close");
  if (!body.empty()) request.set(http::field::content_type, "application/json");
  request.body() = body;
  request.prepare_payload();

  // A string body would reserve what Content-Length says before the limit is checked (Boost 1.74).
  http::response_parser<http::dynamic_body> response;
  response.body_limit(max_response_bytes);
  if (const auto error = exchange(socket_, request, response)) {
    if (error == beast::error::timeout)
      return tl::unexpected(
          api::Problem{.type = "carve:no-response",
                       .title = "no response",
                       .status = 504,
                       .detail = fmt::format("the agent at {} did not answer within {} s; see its log",
                                             socket_, patience.count())});
    if (error.category() == boost::system::system_category())
      return tl::unexpected(unreachable(socket_, error.value()));
    return tl::unexpected(api::Problem{
        .title = "no response",
        .status = 502,
        .detail = fmt::format("the agent at {} closed the connection: {}", socket_, error.message())});
  }
  const unsigned status = response.get().result_int();
  const std::string text = beast::buffers_to_string(response.get().body().data());
  if (status / 100 == 2) return text;
  auto problem = api::read<api::Problem>(text, api::Reading::lenient);
  if (problem && !problem->detail.empty()) return tl::unexpected(*problem);
  return tl::unexpected(
      api::Problem{.title = "refused",
                   .status = status,
                   .detail = fmt::format("the agent refused {} {} with status {}", method, target, status)});
}

}  // namespace carve::client
