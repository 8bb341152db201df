// GET requests to an agent from a loop, over one persistent connection. None of them blocks: the requests are
// sent in the order of the calls, up to eight before the first response, and the loop calls back with each
// response. Compared to a connection for each request, the agent neither accepts a connection nor identifies
// a peer, and the server is verified only when the connection is made (os/server_identity.h).
//
// An agent closes a connection that is idle for 30 s, and one that gives way to others (http/server.h).
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
  // Gets the body of a response with status 200, or no value if there is none.
  using Then = std::function<void(const std::optional<std::string>& body)>;

  KeptConnection(os::Loop&, std::string socket);
  ~KeptConnection();  // No callback follows.
  KeptConnection(const KeptConnection&) = delete;
  KeptConnection& operator=(const KeptConnection&) = delete;

  // Calls `then` once on the loop, in the order of the calls. A request is dropped if `wanted` has expired by
  // the time it could be sent. Returns false, without a callback, if the agent cannot be reached or is not
  // trusted.
  bool get(std::string target, int64_t now_ns, std::weak_ptr<void> wanted, Then then);
  // Calls back without a value for the requests that were made before this time. Returns their number.
  size_t give_up(int64_t before_ns);
  // Returns whether a request that was given up still lacks its response.
  bool is_silent() const { return !requests_.empty() && !requests_.front().then; }
  // Returns whether a request waits for its response.
  bool is_awaited() const { return !requests_.empty() && requests_.back().then; }
  const std::string& socket() const { return path_; }

 private:
  struct Parser;
  struct Request {
    std::string target;
    int64_t made_ns = 0;
    std::weak_ptr<void> wanted;
    Then then;  // Null if it was given up. Its response is recognized by its position.
  };
  bool connect();
  void send_some();
  void receive();
  bool take_responses();
  void reconnect();

  os::Loop& loop_;
  const std::string path_;
  os::Fd socket_;
  std::deque<Request> requests_;  // Without a response, oldest first.
  size_t begun_ = 0;              // Number of first requests whose bytes were sent or are in `unsent_`.
  size_t responses_ = 0;          // Received over this connection.
  std::string unsent_;
  std::string received_;  // Not parsed yet.
  std::unique_ptr<Parser> parser_;
};

}  // namespace carve::controller
