#include "controller/api/console_files.h"

#include "controller/api/api_call.h"
#include "controller/api/controller_routes.h"

namespace carve::controller {
namespace {

// Only this controller's own scripts, styles and data; no other page may show the console in a frame.
constexpr const char* content_policy =
    "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'";

bool is_of_api(std::string_view path) {
  return path.starts_with("/v1/") || path == "/v1" || path == "/openapi.json" || path == "/metrics";
}

// Returns whether the path names a page of the console: its last component has no extension.
bool is_page(std::string_view path) {
  return path.substr(path.rfind('/') + 1).find('.') == std::string_view::npos;
}

}  // namespace

Outcome<ConsoleFiles> ConsoleFiles::open(const std::string& folder) {
  auto files = http::Files::open(folder, refuse_bytes);
  if (!files) return tl::unexpected(files.error());
  if (files->answer({.method = "HEAD", .path = "/", .query = "", .body = ""}).status != 200)
    return failure(FailureKind::not_found, "{} contains no built console: there is no index.html", folder);
  return ConsoleFiles(std::move(*files));
}

std::optional<http::Response> ConsoleFiles::answer(const http::Request& request) const {
  if (is_of_api(request.path)) return std::nullopt;
  http::Request wanted{.method = request.method,
                       .path = is_page(request.path) ? "/" : request.path,
                       .query = "",
                       .body = "",
                       .headers = request.headers};
  http::Response response = files_.answer(wanted);
  response.headers.push_back({"Content-Security-Policy", content_policy});
  response.headers.push_back({"X-Content-Type-Options", "nosniff"});
  response.headers.push_back({"Referrer-Policy", "no-referrer"});
  return response;
}

}  // namespace carve::controller
