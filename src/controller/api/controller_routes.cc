#include "controller/api/controller_routes.h"

#include <algorithm>
#include <ranges>

#include "os/log.h"
#include "wire/api/json.h"
#include "wire/api/problem.h"

namespace carve::controller {
namespace {

using K = FailureKind;

constexpr size_t max_shown_path_bytes = 80;
constexpr size_t max_shown_method_bytes = 20;

template <class T>
http::Response document(const T& document) {
  return {200, "application/json", api::write(document)};
}

http::Response refuse(K kind, std::string detail, unsigned status = 0) {
  api::Problem problem = api::problem_of(kind, std::move(detail));
  if (status != 0) problem.status = status;
  return {problem.status, "application/problem+json", api::write(problem)};
}

constexpr Route table[] = {
    {"GET", "/v1/version", [](const Views& views) { return document(views.version()); }},
    {"GET", "/v1/nodes", [](const Views& views) { return document(views.nodes()); }},
};

}  // namespace

std::span<const Route> routes() { return table; }

http::Response answer(const Views& views, const http::Request& request, const http::Caller& caller) {
  if (caller.anonymous())
    return refuse(
        K::unauthenticated,
        "the caller is not identified; connect to the controller's unix socket, which names its user");
  const auto has_path = [&](const Route& route) { return request.path == route.path; };
  const auto has_method = [&](const Route& route) {
    return has_path(route) && request.method == route.method;
  };
  if (const auto* route = std::ranges::find_if(table, has_method); route != std::end(table)) {
    os::log::debug("{} {} by {}", request.method, request.path, caller.text());
    return route->answer(views);
  }
  const std::string path = request.path.substr(0, max_shown_path_bytes);
  if (std::ranges::any_of(table, has_path))
    return refuse(K::invalid_argument,
                  fmt::format("{} has no method {}", path, request.method.substr(0, max_shown_method_bytes)),
                  405);
  return refuse(K::not_found, fmt::format("there is no {}; the controller has {}", path,
                                          fmt::join(table | std::views::transform(&Route::path), ", ")));
}

http::Response refuse_bytes(unsigned status, std::string detail) {
  const bool exhausted = status == shown(K::resource_exhausted).http_status;
  return refuse(exhausted ? K::resource_exhausted : K::invalid_argument, std::move(detail), status);
}

}  // namespace carve::controller
