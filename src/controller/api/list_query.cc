#include "controller/api/list_query.h"

#include <charconv>

#include "controller/api/query.h"

namespace carve::controller {
namespace {

constexpr size_t max_continue_bytes = 1024;

// Returns "PLURAL/NAMESPACE/NAME" in hexadecimal digits.
std::string continue_text(const ObjectKey& key) {
  const std::string plain =
      fmt::format("{}/{}/{}", objects::text_of(key.kind).plural, key.namespace_, key.name);
  std::string out;
  for (const char c : plain) out += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return out;
}

std::optional<std::string> from_hexadecimal(const std::string& text) {
  if (text.size() % 2 != 0 || text.size() > max_continue_bytes) return std::nullopt;
  std::string out;
  for (size_t i = 0; i < text.size(); i += 2) {
    unsigned char byte = 0;
    const char* const end = text.data() + i + 2;
    const auto [stop, error] = std::from_chars(text.data() + i, end, byte, 16);
    if (error != std::errc() || stop != end) return std::nullopt;
    out += static_cast<char>(byte);
  }
  return out;
}

Outcome<ObjectKey> parse_continue(const std::string& text, objects::Kind kind) {
  const auto plain = from_hexadecimal(text);
  const size_t first = plain ? plain->find('/') : std::string::npos;
  const size_t second = first == std::string::npos ? first : plain->find('/', first + 1);
  if (second == std::string::npos || plain->substr(0, first) != objects::text_of(kind).plural)
    return failure(FailureKind::invalid_argument,
                   "continue: '{}' is not a valid token for a list of {}; list again from the beginning",
                   text.substr(0, max_shown_bytes), objects::text_of(kind).plural);
  return ObjectKey{kind, plain->substr(first + 1, second - first - 1), plain->substr(second + 1)};
}

}  // namespace

Outcome<size_t> parse_limit(const std::string& word) {
  size_t limit = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), limit);
  if (error != std::errc() || end != word.data() + word.size() || limit == 0 || limit > max_list_limit)
    return failure(FailureKind::invalid_argument, "limit: '{}' is not a whole number from 1 to {}",
                   word.substr(0, max_shown_bytes), max_list_limit);
  return limit;
}

Outcome<ListQuery> parse_list_query(const std::string& query, objects::Kind kind) {
  const auto words = parse_query(query, {"namespace", "labelSelector", "limit", "continue"});
  if (!words) return tl::unexpected(words.error());
  ListQuery out;
  for (const auto& [name, value] : *words) {
    if (name == "namespace") out.namespace_ = value;
    if (name == "labelSelector") {
      auto selector = parse_label_selector(value);
      if (!selector) return tl::unexpected(selector.error());
      out.selector = std::move(*selector);
    }
    if (name == "limit") {
      const auto limit = parse_limit(value);
      if (!limit) return tl::unexpected(limit.error());
      out.limit = *limit;
    }
    if (name == "continue" && !value.empty()) {
      auto behind = parse_continue(value, kind);
      if (!behind) return tl::unexpected(behind.error());
      out.behind = std::move(*behind);
    }
  }
  return out;
}

ListPage page_of(const std::vector<ObjectRegistry::Pointer>& all, const ListQuery& query) {
  ListPage page;
  for (const auto& object : all) {
    if (query.behind && object->key <= *query.behind) continue;
    if (!selects(query.selector, object->labels)) continue;
    if (page.objects.size() == query.limit) {
      page.next = continue_text(page.objects.back()->key);
      return page;
    }
    page.objects.push_back(object);
  }
  return page;
}

}  // namespace carve::controller
