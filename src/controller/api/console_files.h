// The files of the web console, which every caller may read: they contain no data of this controller. A path
// that is neither a file nor a path of the API is one of the console's pages, so it gets index.html.
#pragma once

#include <optional>
#include <string>

#include "http/files.h"

namespace carve::controller {

class ConsoleFiles {
 public:
  // Opens the folder with the built console. Fails if it has no index.html.
  static Outcome<ConsoleFiles> open(const std::string& folder);

  // Returns the response to a request for a file or a page; no value for a path of the API.
  std::optional<http::Response> answer(const http::Request&) const;

 private:
  explicit ConsoleFiles(http::Files files) : files_(std::move(files)) {}

  http::Files files_;
};

}  // namespace carve::controller
