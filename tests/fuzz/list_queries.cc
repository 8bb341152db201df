// Any bytes as the query of a list or a watch, or as Host and Origin, yield a value or a message.
#include <cstdint>
#include <cstdlib>

#include "controller/api/known_hosts.h"
#include "controller/api/list_query.h"
#include "controller/api/watch_routes.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace carve;
  using namespace carve::controller;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto list = parse_list_query(text, objects::Kind::service);
  if (list ? list->limit == 0 || list->limit > max_list_limit : list.error().message.empty()) std::abort();
  if (list && list->selector.size() > max_selector_requirements) std::abort();
  const auto selector = parse_label_selector(text);
  if (selector) (void)selects(*selector, {{"app", "web"}, {"zone", ""}});
  const auto watch = watch_query({.method = "GET", .path = "/v1/watch", .query = text, .body = ""});
  if (watch && watch->kinds.empty()) std::abort();
  http::Headers headers;
  headers.add("Host", text.substr(0, text.find('\n')));
  headers.add("Origin", text);
  (void)KnownHosts().refusal(headers);
  return 0;
}
