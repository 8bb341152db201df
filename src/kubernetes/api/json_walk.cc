#include "kubernetes/api/json_walk.h"

#include <fmt/format.h>

#include <algorithm>

#include "kubernetes/api/answers.h"

namespace carve::kubernetes {

bool is_path(std::span<const JsonLevel> path, std::initializer_list<std::string_view> keys) {
  return std::ranges::equal(path, keys, {}, &JsonLevel::key);
}

bool JsonWalk::read(std::string_view text) {
  return nlohmann::json::sax_parse(text, static_cast<nlohmann::json_sax<nlohmann::json>*>(this));
}

bool JsonWalk::key(string_t& key) {
  levels_.back().key = key;
  return true;
}

bool JsonWalk::end_object() {
  levels_.pop_back();
  closed(levels_);
  return true;
}

bool JsonWalk::end_array() {
  levels_.pop_back();
  return true;
}

bool JsonWalk::parse_error(size_t position, const std::string&, const nlohmann::detail::exception&) {
  problem_ = fmt::format("invalid JSON at byte {}", position);
  return false;
}

bool JsonWalk::entered(bool is_list) {
  if (levels_.size() == max_json_depth) {
    problem_ = fmt::format("nested deeper than {} levels", max_json_depth);
    return false;
  }
  levels_.push_back({.key = "", .is_list = is_list});
  return true;
}

bool JsonWalk::taken(const std::string& text) {
  if (!levels_.empty()) value(levels_, text);
  return true;
}

}  // namespace carve::kubernetes
