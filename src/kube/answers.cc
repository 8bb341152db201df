#include "kube/answers.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>

namespace carve::kube {
namespace {

using nlohmann::json;

// A level of the document: the key that is being read, or a list.
struct Level {
  std::string key;
  bool is_list = false;
};

// Calls `value` with each text, number and truth value, and `closed` with the end of each object.
class Walk : public nlohmann::json_sax<json> {
 public:
  const std::string& problem() const { return problem_; }

  bool null() override { return true; }
  bool boolean(bool value) override { return taken(value ? "true" : "false"); }
  bool number_integer(number_integer_t value) override { return taken(fmt::format("{}", value)); }
  bool number_unsigned(number_unsigned_t value) override { return taken(fmt::format("{}", value)); }
  bool number_float(number_float_t, const string_t& text) override { return taken(text); }
  bool string(string_t& value) override { return taken(value); }
  bool binary(binary_t&) override { return false; }
  bool start_object(size_t) override { return entered(false); }
  bool start_array(size_t) override { return entered(true); }
  bool key(string_t& key) override {
    levels_.back().key = key;
    return true;
  }
  bool end_object() override {
    levels_.pop_back();
    closed(levels_);
    return true;
  }
  bool end_array() override {
    levels_.pop_back();
    return true;
  }
  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception&) override {
    problem_ = fmt::format("not JSON at byte {}", position);
    return false;
  }

 protected:
  virtual void value(std::span<const Level> path, const std::string& text) = 0;
  virtual void closed(std::span<const Level> path) = 0;

 private:
  bool entered(bool is_list) {
    if (levels_.size() == max_json_depth) {
      problem_ = fmt::format("deeper than {} levels", max_json_depth);
      return false;
    }
    levels_.push_back({.key = "", .is_list = is_list});
    return true;
  }
  bool taken(const std::string& text) {
    if (!levels_.empty()) value(levels_, text);
    return true;
  }

  std::vector<Level> levels_;
  std::string problem_;
};

bool is(std::span<const Level> path, std::initializer_list<std::string_view> keys) {
  return std::ranges::equal(path, keys, {}, &Level::key);
}

// Collects an object's metadata from the values below it.
class MetaCollector {
 public:
  ObjectMeta object;

  // `path` begins in the object.
  void value(std::span<const Level> path, const std::string& text) {
    if (path.size() < 2 || path[0].key != "metadata") return;
    const std::string& field = path[1].key;
    if (path.size() == 2) {
      if (field == "name") object.name = text;
      if (field == "namespace") object.name_space = text;
      if (field == "uid") object.uid = text;
      if (field == "resourceVersion") object.resource_version = text;
      if (field == "deletionTimestamp") object.is_deleting = true;
    } else if (path.size() == 3 && field == "labels") {
      object.labels[path[2].key] = text;
    } else if (path.size() == 3 && field == "annotations") {
      object.annotations[path[2].key] = text;
    } else if (path.size() == 4 && field == "ownerReferences") {
      if (path[3].key == "uid") owner_uid_ = text;
      if (path[3].key == "controller") owner_controls_ = text == "true";
    }
  }
  void closed(std::span<const Level> path) {
    if (path.size() != 3 || path[0].key != "metadata" || path[1].key != "ownerReferences") return;
    if (owner_controls_) object.controller_uid = owner_uid_;
    owner_uid_.clear();
    owner_controls_ = false;
  }

 private:
  std::string owner_uid_;
  bool owner_controls_ = false;
};

constexpr size_t item_levels = 2;  // "items", and the list.

class ListWalk final : public Walk {
 public:
  ListPage page;

 private:
  static bool is_in_item(std::span<const Level> path) {
    return path.size() >= item_levels && path[0].key == "items" && path[1].is_list;
  }
  void value(std::span<const Level> path, const std::string& text) override {
    if (is(path, {"metadata", "resourceVersion"})) page.resource_version = text;
    if (is(path, {"metadata", "continue"})) page.next = text;
    if (is_in_item(path)) item_.value(path.subspan(item_levels), text);
  }
  void closed(std::span<const Level> path) override {
    if (!is_in_item(path)) return;
    if (path.size() > item_levels) return item_.closed(path.subspan(item_levels));
    page.items.push_back(std::move(item_.object));
    item_ = {};
  }

  MetaCollector item_;
};

class EventWalk final : public Walk {
 public:
  std::string type;
  WatchEvent event;

  void finish() { event.object = std::move(object_.object); }

 private:
  void value(std::span<const Level> path, const std::string& text) override {
    if (is(path, {"type"})) type = text;
    if (is(path, {"object", "message"})) event.message = text;
    if (is(path, {"object", "code"}) && text.size() <= 3 && std::ranges::all_of(text, ::isdigit))
      event.code = static_cast<uint32_t>(std::stoul(text));
    if (!path.empty() && path[0].key == "object") object_.value(path.subspan(1), text);
  }
  void closed(std::span<const Level> path) override {
    if (!path.empty() && path[0].key == "object") object_.closed(path.subspan(1));
  }

  MetaCollector object_;
};

struct TypeText {
  std::string_view text;
  WatchEvent::Type type;
};
constexpr TypeText types[] = {{"ADDED", WatchEvent::Type::added},
                              {"MODIFIED", WatchEvent::Type::modified},
                              {"DELETED", WatchEvent::Type::deleted},
                              {"BOOKMARK", WatchEvent::Type::bookmark},
                              {"ERROR", WatchEvent::Type::error}};

}  // namespace

Result<ListPage, std::string> read_list_page(std::string_view text) {
  ListWalk walk;
  if (!json::sax_parse(text, &walk)) return tl::unexpected("a list: " + walk.problem());
  if (walk.page.resource_version.empty())
    return tl::unexpected(std::string("a list without a resourceVersion"));
  for (const ObjectMeta& item : walk.page.items)
    if (item.uid.empty() || item.name.empty())
      return tl::unexpected(
          fmt::format("a list with an object '{}' without uid or name", item.name.substr(0, 80)));
  return std::move(walk.page);
}

Result<WatchEvent, std::string> read_watch_event(std::string_view line) {
  EventWalk walk;
  if (!json::sax_parse(line, &walk)) return tl::unexpected("a watch event: " + walk.problem());
  const auto* const known = std::ranges::find(types, walk.type, &TypeText::text);
  if (known == std::end(types))
    return tl::unexpected(fmt::format("a watch event of type '{}'", walk.type.substr(0, 80)));
  walk.finish();
  WatchEvent out = std::move(walk.event);
  out.type = known->type;
  const bool has_object = out.type != WatchEvent::Type::bookmark && out.type != WatchEvent::Type::error;
  if (has_object && (out.object.uid.empty() || out.object.name.empty()))
    return tl::unexpected(std::string("a watch event of an object without uid or name"));
  if (out.type != WatchEvent::Type::error && out.object.resource_version.empty())
    return tl::unexpected(std::string("a watch event without a resourceVersion"));
  return out;
}

}  // namespace carve::kube
