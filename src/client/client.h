// The connection of the CLI and of the controller to an agent: HTTP over a unix socket (wire/api/FORMAT.md).
// Every failure, from a missing agent to a rejection by the agent, is returned as one Problem with a message.
// A server that runs as an untrusted user is rejected (os/server_identity.h). A call blocks its thread; any
// number of threads may call concurrently.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "client/event_stream.h"
#include "wire/api/json.h"
#include "wire/api/problem.h"

namespace carve::client {

template <class T>
using Answer = Result<T, api::Problem>;

// Returns the path of the agent's socket: `flag` if given, otherwise CARVE_SOCKET, otherwise the socket in
// /run/carve if this user may use it, otherwise the one in this user's directory ($XDG_RUNTIME_DIR/carve or
// /tmp/carve-UID). A folder in /tmp that another user may change is not used.
std::string find_socket(const std::string& flag);

// Returns the path of the controller's socket: `flag` if given, otherwise CARVE_CONTROLLER, otherwise
// controller.sock in the folder of the agent's socket.
std::string find_controller_socket(const std::string& flag);

// The program that listens at the socket, as messages name it.
enum class Server : uint8_t { agent, controller };

// Settings that differ between the calling programs.
struct Settings {
  std::chrono::seconds patience{30};  // The longest time until a call must have its response.
  const char* socket_option = "--socket PATH or CARVE_SOCKET";  // How the user names another socket.
  Server server = Server::agent;
  void (*warn)(const std::string& warning) = nullptr;  // Called for each warning in a response.
};

// A response as the server sent it, whatever its status.
struct RawAnswer {
  unsigned status = 0;
  std::string type;  // The content type.
  std::string body;
  std::vector<std::string> warnings = {};
};

// Headers of a request that most requests do not have.
struct RequestHeaders {
  std::string_view accept = {};  // The media type to request; empty for the server's default.
  std::string version = {};      // The version that the object must have; empty for any.
};

// Why a stream of events ended.
struct WatchEnd {
  api::Problem problem;
  bool opened = false;  // The agent had begun the stream, and the connection was lost later.
};

// Returns the problem in a response that is not of status 2xx.
api::Problem refusal(std::string_view method, std::string_view target, const RawAnswer&);

// A server that is not at a unix socket of this machine (client/remote/https_server.h). The functions are those of
// Client, and any number of threads may call them concurrently.
class Remote {
 public:
  virtual ~Remote() = default;
  virtual Answer<RawAnswer> ask(std::string_view method, std::string_view target, const std::string& body,
                                const RequestHeaders& headers) const = 0;
  virtual WatchEnd watch(std::string_view target, const std::string& last_id,
                         const std::function<void(const StreamEvent&)>& act) const = 0;
  virtual std::string address() const = 0;  // "https://gpu.example:8470"
};

class Client {
 public:
  explicit Client(std::string socket, Settings settings = {})
      : socket_(std::move(socket)), settings_(settings) {}
  // `remote` must not be null.
  Client(std::shared_ptr<const Remote> remote, Settings settings)
      : socket_(remote->address()), settings_(settings), remote_(std::move(remote)) {}

  template <api::Document T>
  Answer<T> get(std::string_view target) const {
    return decoded<T>(call("GET", target, {}));
  }
  template <api::Document T>
  Answer<T> remove(std::string_view target) const {
    return decoded<T>(call("DELETE", target, {}));
  }
  template <api::Document T, api::Document Body>
  Answer<T> post(std::string_view target, const Body& body) const {
    return decoded<T>(call("POST", target, api::write(body)));
  }

  template <api::Document T, api::Document Body>
  Answer<T> patch(std::string_view target, const Body& body) const {
    return decoded<T>(call("PATCH", target, api::write(body)));
  }
  // Sends a merge patch, and returns the changed object unparsed. The server rejects the patch as stale unless
  // the object has this version (metadata.resourceVersion).
  Answer<std::string> patch_version(std::string_view target, const std::string& patch,
                                    const std::string& version) const {
    return call("PATCH", target, patch, {.version = version});
  }
  // Sends a body unchanged, for example a user's document.
  template <api::Document T>
  Answer<T> send(std::string_view method, std::string_view target, const std::string& body) const {
    return decoded<T>(call(method, target, body));
  }
  // Returns the body unparsed, for responses that are not an API document.
  // `accept` is the media type to request; empty for the server's default.
  Answer<std::string> text(std::string_view target, std::string_view accept = {}) const {
    return call("GET", target, {}, {.accept = accept});
  }
  // Returns the response unparsed, even if it is an error. A problem means that the server could not be
  // reached.
  Answer<RawAnswer> ask(std::string_view method, std::string_view target, const std::string& body,
                        const RequestHeaders& headers = {}) const;

  // Calls `act` for each event of a stream, until the agent closes the connection or sends nothing for 45 s
  // (it sends a comment every 15 s). The stream begins after the event with the id `last_id`, or at its
  // beginning if `last_id` is empty.
  WatchEnd watch(std::string_view target, const std::string& last_id,
                 const std::function<void(const StreamEvent&)>& act) const;

  // Returns the path of the socket, or the address of a remote server.
  const std::string& socket() const { return socket_; }

 private:
  // Returns the body of a 2xx response, or the problem.
  Answer<std::string> call(std::string_view method, std::string_view target, const std::string& body,
                           const RequestHeaders& headers = {}) const;

  template <api::Document T>
  static Answer<T> decoded(const Answer<std::string>& body) {
    if (!body) return tl::unexpected(body.error());
    auto document = api::read<T>(*body, api::Reading::lenient);
    if (!document)
      return tl::unexpected(
          api::Problem{.title = "the agent's answer cannot be read", .detail = document.error()});
    return *document;
  }

  std::string socket_;
  Settings settings_;
  std::shared_ptr<const Remote> remote_;  // Null for a unix socket.
};

}  // namespace carve::client
