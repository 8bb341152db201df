// Sends GET requests to an agent from a loop, over one persistent connection, without blocking. The requests
// are sent in the order of the calls, up to eight before the first response, and the loop calls back with
// each response. This saves the agent from accepting a connection and identifying its peer for each request,
// and the server is verified only once per connection (os/server_identity.h).
//
// An agent closes connections that are idle for 30 s, or sooner to make room for others (http/server.h).
// Requests without a response are then sent again over a new connection, as long as each connection yields a
// response.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "os/fd.h"
#include "os/loop.h"

namespace carve::controller {

class KeptConnection {
 public:
  // Called with the body of a response with status 200, or without a value if there is none.
  using Then = std::function<void(const std::optional<std::string>& body)>;

  KeptConnection(os::Loop&, std::string socket);
  ~KeptConnection();  // No callback is made afterwards.
  KeptConnection(const KeptConnection&) = delete;
  KeptConnection& operator=(const KeptConnection&) = delete;

  // Calls `then` once on the loop, in the order of the calls to get(). A request is dropped if `wanted` has
  // expired when it could be sent. Returns false without a callback if the agent cannot be reached or is not
  // trusted.
  bool get(std::string target, int64_t now_ns, std::weak_ptr<void> wanted, Then then);
  // Calls back without a value for all requests made before this time. Returns their number.
  size_t give_up(int64_t before_ns);
  // Returns whether a request that was given up has no response yet.
  bool is_silent() const { return !requests_.empty() && !requests_.front().then; }
  // Returns whether a request is waiting for its response.
  bool is_awaited() const { return !requests_.empty() && requests_.back().then; }
  const std::string& socket() const { return path_; }

 private:
  struct Parser;
  struct Request {
    std::string target;
    int64_t made_ns = 0;
    std::weak_ptr<void> wanted;
    Then then;  // Null if it was given up. Responses are matched by their order.
  };
  bool connect();
  void send_some();
  void receive();
  bool take_responses();
  void reconnect();

  os::Loop& loop_;
  const std::string path_;
  os::Fd socket_;
  std::deque<Request> requests_;  // Requests without a response, oldest first.
  size_t begun_ = 0;              // The first `begun_` requests were sent or are in `unsent_`.
  size_t responses_ = 0;          // Number of responses on this connection.
  std::string unsent_;
  std::string received_;  // Not parsed yet.
  std::unique_ptr<Parser> parser_;
};

}  // namespace carve::controller
