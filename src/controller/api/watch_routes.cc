#include "controller/api/watch_routes.h"

#include <charconv>
#include <ranges>

#include "controller/api/query.h"

namespace carve::controller {
namespace {

Outcome<uint64_t> version_of(const char* name, const std::string& word) {
  uint64_t version = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), version);
  if (word.empty() || error != std::errc() || end != word.data() + word.size())
    return failure(FailureKind::invalid_argument,
                   "{}: '{}' is not a resource version (a non-negative whole number)", name,
                   word.substr(0, max_shown_bytes));
  return version;
}

Outcome<std::set<objects::Kind>> kinds_of(const std::string& words) {
  std::set<objects::Kind> out;
  for (const auto part : std::views::split(words, ',')) {
    const std::string_view word(part.begin(), part.end());
    const auto* const kind = std::ranges::find(objects::kinds, word, &objects::KindText::plural);
    if (kind == std::end(objects::kinds))
      return failure(FailureKind::invalid_argument, "kinds: '{}' is not a kind; use {}",
                     word.substr(0, max_shown_bytes),
                     fmt::join(objects::kinds | std::views::transform(&objects::KindText::plural), ", "));
    out.insert(kind->value);
  }
  if (out.empty())
    return failure(FailureKind::invalid_argument,
                   "kinds: must not be empty; list a kind, or leave the parameter out");
  return out;
}

}  // namespace

Outcome<WatchQuery> watch_query(const http::Request& request) {
  const auto query = parse_query(request.query, {"kinds", "namespace", "labelSelector", "resourceVersion"});
  if (!query) return tl::unexpected(query.error());
  const auto text_of = [&](const char* name) {
    const auto found = query->find(name);
    return found == query->end() ? std::string() : found->second;
  };
  WatchQuery out{.kinds = {}, .namespace_ = text_of("namespace"), .selector = {}, .behind = {}};
  if (query->contains("kinds")) {
    auto kinds = kinds_of(text_of("kinds"));
    if (!kinds) return tl::unexpected(kinds.error());
    out.kinds = std::move(*kinds);
  } else {
    for (const objects::KindText& kind : objects::kinds) out.kinds.insert(kind.value);
  }
  auto selector = parse_label_selector(text_of("labelSelector"));
  if (!selector) return tl::unexpected(selector.error());
  out.selector = std::move(*selector);
  const std::string* last = request.headers.find("Last-Event-ID");
  if (last == nullptr && !query->contains("resourceVersion")) return out;
  const auto version = last != nullptr ? version_of("Last-Event-ID", *last)
                                       : version_of("resourceVersion", text_of("resourceVersion"));
  if (!version) return tl::unexpected(version.error());
  out.behind = *version;
  return out;
}

std::function<bool()> validity_of(const Call& call) {
  if (call.session != nullptr)
    return [sessions = call.context.sessions, &views = call.context.views, name = call.session->name] {
      return sessions->has(name, views.now_ns());
    };
  const auto token = http::bearer_token(call.request.headers);
  if (!token || call.caller.token_account() == nullptr) return nullptr;
  return [&tokens = call.context.tokens, &views = call.context.views, text = std::string(*token)] {
    return tokens.caller(text, views.now_ns()).has_value();
  };
}

http::Response watch(const Call& call) {
  auto query = watch_query(call.request);
  if (!query) return refuse(query.error());
  auto stream = call.context.watches->begin(std::move(*query), call.caller, validity_of(call));
  if (!stream) return refuse(stream.error());
  return {.content = std::move(*stream)};
}

}  // namespace carve::controller
