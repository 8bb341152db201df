// The controller's routes (wire/api/FORMAT.md) in one table. A caller that is not identified gets 401 from
// every path, including paths that do not exist, except for the console's files and for signing in.
//
// Every identified caller may read nodes and objects; only the owner, its account and operators may read
// environments and logs. A change requires the role 'user' and a right to the object; only operators may
// manage tokens.
#pragma once

#include "controller/api/route.h"
#include "controller/api/watches.h"
#include "http/server.h"

namespace carve::controller {

std::span<const Route> routes();

class ControllerRoutes {
 public:
  explicit ControllerRoutes(ApiContext context);
  ControllerRoutes(const ControllerRoutes&) = delete;
  ControllerRoutes& operator=(const ControllerRoutes&) = delete;

  http::Response answer(const http::Request& request, const http::Caller& caller) {
    return answer(request, caller, nullptr);
  }
  // Sends the changes of the objects to the watchers. Called on the API's loop after a change.
  void deliver_changes() { watches_.deliver(); }
  // Sends changes of agents' states and of queue positions to the watchers. Call it every second.
  void refresh_watches() { watches_.refresh(); }

 private:
  // The sender of a request, and the session of its browser.
  struct Sender {
    http::Caller caller;
    std::optional<Session> session = {};
  };
  // Returns the sender that the request's token or session names, or the connected caller if it has neither.
  // A request that signs a browser in may be anonymous.
  Result<Sender, http::Response> identified(const http::Request&, const http::Caller&);

  http::Response answer(const http::Request&, const http::Caller& connection, const ReadDocuments*);
  http::Response answer_identified(const http::Request&, const Sender&, const http::Caller& connection,
                                   const ReadDocuments*);
  // Calls the route's handler with this context.
  http::Response answer_route(ApiContext&, const http::Request&, const Sender&,
                              const http::Caller* connection, const ReadDocuments*);
  http::Response change_later(const http::Request&, const Sender&, const http::Caller& connection);
  void audit(const http::Request&, const http::Caller& caller, const http::Caller& connection,
             unsigned status);

  ApiContext context_;
  ApiContext change_context_;  // For changes in a thread: without the parts that only the loop may use.
  Watches watches_;
  WrongTokens wrong_tokens_;
};

// Returns the size limit of a request's body, which is larger for documents.
size_t body_limit(std::string_view method, std::string_view path);

// The response to bytes that are not an HTTP request.
http::Response refuse_bytes(unsigned status, std::string detail);

}  // namespace carve::controller
