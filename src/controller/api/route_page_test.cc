// docs/controller-api.md lists every route. It is made here, from the table of routes; a test fails if it is
// out of date. CARVE_WRITE_PAGES=1 makes the test write it.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <span>

#include "controller/api/controller_routes.h"

namespace carve::controller {
namespace {

constexpr const char* page_path = PAGES "/controller-api.md";

constexpr std::string_view head = R"(# The controller's API

<!-- Made by route_page_test.cc from the table of routes; a test fails if it is out of date. -->

HTTP and JSON over a Unix socket, or over TCP with a token ([services-tcp.md](services-tcp.md)). `GET /openapi.json` returns the same
list as OpenAPI 3.1 with a JSON Schema of each document; [fields.md](fields.md) explains the fields of objects, and
[FORMAT.md](../src/wire/api/FORMAT.md) the rules that all routes have. KIND is `services` or `applications`. Every response other than
2xx is a `Problem` (RFC 9457).

| route | query | body | response | purpose |
|---|---|---|---|---|
)";

// Returns "/v1/KIND/NAME/slices/SLICE" for "/v1/{kind}/{}/slices/{}".
std::string shown_path(std::string path) {
  for (const auto& [hole, name] : {std::pair("{kind}", "KIND"), {"{}", "NAME"}, {"{}", "SLICE"}})
    if (const size_t at = path.find(hole); at != std::string::npos)
      path.replace(at, std::string_view(hole).size(), name);
  return path;
}

std::string shown_schema(const std::string& schema) {
  if (schema.empty()) return "";
  if (schema == "Kind") return "the object";
  if (schema == "KindList") return "a list of objects";
  if (schema == "Nothing") return "`{}`";
  if (schema == "any") return "JSON";
  if (schema == "text") return "text";
  if (schema == "events") return "a stream of events";
  return fmt::format("`{}`", schema);
}

std::string page(std::span<const Route> routes) {
  std::string out(head);
  for (const Route& route : routes) {
    const std::string query = route.query.empty() ? "" : fmt::format("`{}`", route.query);
    out += fmt::format("| `{} {}` | {} | {} | {} | {} |\n", route.method, shown_path(route.path), query,
                       shown_schema(route.body_schema), shown_schema(route.answer_schema),
                       route.summary.substr(0, route.summary.size() - 1));
  }
  return out;
}

std::string contents(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

TEST(RoutePage, is_up_to_date) {
  const std::string expected = page(routes());
  if (std::getenv("CARVE_WRITE_PAGES") != nullptr) std::ofstream(page_path) << expected;
  EXPECT_TRUE(contents(page_path) == expected)
      << page_path << " is out of date; run this test with CARVE_WRITE_PAGES=1";
}

}  // namespace
}  // namespace carve::controller
