// The controller's routes (wire/api/FORMAT.md): one table. A caller that is not identified gets 401 from
// every path, also from one that does not exist. Every identified caller may see the nodes.
#pragma once

#include <span>
#include <string>

#include "http/server.h"
#include "wire/api/controller.h"

namespace carve::controller {

// What the routes show. The routes see values only, no connection and no database.
class Views {
 public:
  virtual ~Views() = default;
  virtual api::ControllerVersion version() const = 0;
  virtual api::KnownNodeList nodes() const = 0;
};

struct Route {
  const char* method;
  const char* path;
  http::Response (*answer)(const Views&);
};
std::span<const Route> routes();

http::Response answer(const Views&, const http::Request&, const http::Caller&);

// The response to bytes that are no HTTP request.
http::Response refuse_bytes(unsigned status, std::string detail);

}  // namespace carve::controller
