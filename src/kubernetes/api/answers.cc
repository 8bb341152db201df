#include "kubernetes/api/answers.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "kubernetes/api/json_walk.h"

namespace carve::kubernetes {
namespace {

// Returns "2026-01-31T10:20:30Z" as 20260131102030. Returns 0 if the text has another form.
uint64_t digits_of(const std::string& time) {
  constexpr size_t time_digits = 14;
  uint64_t out = 0;
  size_t digits = 0;
  for (const char c : time) {
    if (c < '0' || c > '9') continue;
    out = out * 10 + static_cast<uint64_t>(c - '0');
    if (++digits == time_digits) return out;
  }
  return 0;
}

// Collects an object's metadata from the values below it.
class MetaCollector {
 public:
  explicit MetaCollector(KeptKeys kept = {}) : kept_(kept) {}

  ObjectMeta object;

  // Takes a value at `path`, which is relative to the object.
  void value(std::span<const JsonLevel> path, const std::string& text) {
    if (is_path(path, {"status", "nominatedNodeName"})) object.nominated_node = text;
    if (path.size() < 2 || path[0].key != "metadata") return;
    const std::string& field = path[1].key;
    if (path.size() == 2) {
      if (field == "name") object.name = text;
      if (field == "namespace") object.name_space = text;
      if (field == "uid") object.uid = text;
      if (field == "resourceVersion") object.resource_version = text;
      if (field == "creationTimestamp") object.created = digits_of(text);
      if (field == "deletionTimestamp") object.is_deleting = true;
    } else if (path.size() == 3 && field == "labels") {
      if (keeps(path[2].key)) object.labels[path[2].key] = text;
    } else if (path.size() == 3 && field == "annotations") {
      if (keeps(path[2].key)) object.annotations[path[2].key] = text;
    } else if (path.size() == 4 && field == "ownerReferences") {
      if (path[3].key == "uid") owner_uid_ = text;
      if (path[3].key == "controller") owner_controls_ = text == "true";
    }
  }
  void closed(std::span<const JsonLevel> path) {
    if (path.size() != 3 || path[0].key != "metadata" || path[1].key != "ownerReferences") return;
    if (owner_controls_) object.controller_uid = owner_uid_;
    owner_uid_.clear();
    owner_controls_ = false;
  }
  // Returns the object that was read and starts a new one.
  ObjectMeta taken() { return std::exchange(object, {}); }

 private:
  bool keeps(std::string_view key) const {
    return kept_.empty() || std::ranges::find(kept_, key) != kept_.end();
  }

  const KeptKeys kept_;
  std::string owner_uid_;
  bool owner_controls_ = false;
};

constexpr size_t item_levels = 2;  // "items", and the list.

class ListWalk final : public JsonWalk {
 public:
  explicit ListWalk(KeptKeys kept) : item_(kept) {}

  ListPage page;

 private:
  static bool is_in_item(std::span<const JsonLevel> path) {
    return path.size() >= item_levels && path[0].key == "items" && path[1].is_list;
  }
  void value(std::span<const JsonLevel> path, const std::string& text) override {
    if (is_path(path, {"metadata", "resourceVersion"})) page.resource_version = text;
    if (is_path(path, {"metadata", "continue"})) page.next = text;
    if (is_in_item(path)) item_.value(path.subspan(item_levels), text);
  }
  void closed(std::span<const JsonLevel> path) override {
    if (!is_in_item(path)) return;
    if (path.size() > item_levels) return item_.closed(path.subspan(item_levels));
    page.items.push_back(item_.taken());
  }

  MetaCollector item_;
};

class EventWalk final : public JsonWalk {
 public:
  explicit EventWalk(KeptKeys kept) : object_(kept) {}

  std::string type;
  WatchEvent event;

  void finish() { event.object = object_.taken(); }

 private:
  void value(std::span<const JsonLevel> path, const std::string& text) override {
    if (is_path(path, {"type"})) type = text;
    if (is_path(path, {"object", "message"})) event.message = text;
    if (is_path(path, {"object", "code"}) && text.size() <= 3 && std::ranges::all_of(text, ::isdigit))
      event.code = static_cast<uint32_t>(std::stoul(text));
    if (!path.empty() && path[0].key == "object") object_.value(path.subspan(1), text);
  }
  void closed(std::span<const JsonLevel> path) override {
    if (!path.empty() && path[0].key == "object") object_.closed(path.subspan(1));
  }

  MetaCollector object_;
};

class ObjectWalk final : public JsonWalk {
 public:
  MetaCollector object;

 private:
  void value(std::span<const JsonLevel> path, const std::string& text) override { object.value(path, text); }
  void closed(std::span<const JsonLevel> path) override { object.closed(path); }
};

class StatusWalk final : public JsonWalk {
 public:
  ApiStatus status;

 private:
  void value(std::span<const JsonLevel> path, const std::string& text) override {
    if (is_path(path, {"reason"})) status.reason = text;
    if (is_path(path, {"message"})) status.message = text;
  }
};

class VersionWalk final : public JsonWalk {
 public:
  ServerVersion version;

 private:
  void value(std::span<const JsonLevel> path, const std::string& text) override {
    if (is_path(path, {"major"})) version.major = number_of(text);
    if (is_path(path, {"minor"})) version.minor = number_of(text);
    if (is_path(path, {"gitVersion"})) version.text = text.substr(text.starts_with('v') ? 1 : 0);
  }
  static unsigned number_of(const std::string& text) {
    unsigned out = 0;
    std::from_chars(text.data(), text.data() + text.size(), out);
    return out;
  }
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

Result<ListPage, std::string> read_list_page(std::string_view text, KeptKeys kept) {
  ListWalk walk(kept);
  if (!walk.read(text)) return tl::unexpected("a list: " + walk.problem());
  if (walk.page.resource_version.empty()) return tl::unexpected(std::string("a list has no resourceVersion"));
  for (const ObjectMeta& item : walk.page.items)
    if (item.uid.empty() || item.name.empty())
      return tl::unexpected(
          fmt::format("a list has an object '{}' without uid or name", item.name.substr(0, 80)));
  return std::move(walk.page);
}

void keep_documents(std::string_view json, ListPage& page) {
  const nlohmann::json list = nlohmann::json::parse(json, nullptr, /*allow_exceptions=*/false);
  size_t next = 0;
  if (!list.contains("items")) return;
  for (const nlohmann::json& item : list["items"])
    if (item.is_object() && next < page.items.size()) page.items[next++].document = item.dump();
}

void keep_document(std::string_view line, WatchEvent& event) {
  const nlohmann::json whole = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (whole.contains("object")) event.object.document = whole["object"].dump();
}

Result<ObjectMeta, std::string> read_object(std::string_view json) {
  ObjectWalk walk;
  if (!walk.read(json)) return tl::unexpected("an object: " + walk.problem());
  if (walk.object.object.uid.empty() || walk.object.object.name.empty())
    return tl::unexpected(std::string("an object has no uid or no name"));
  return std::move(walk.object.object);
}

Result<ServerVersion, std::string> read_server_version(std::string_view json) {
  VersionWalk walk;
  if (!walk.read(json)) return tl::unexpected("a version: " + walk.problem());
  if (walk.version.major == 0) return tl::unexpected(std::string("a version has no 'major'"));
  return std::move(walk.version);
}

ApiStatus read_status(std::string_view json) {
  StatusWalk walk;
  if (!walk.read(json)) return {};
  return std::move(walk.status);
}

Result<WatchEvent, std::string> read_watch_event(std::string_view line, KeptKeys kept) {
  EventWalk walk(kept);
  if (!walk.read(line)) return tl::unexpected("a watch event: " + walk.problem());
  const auto* const known = std::ranges::find(types, walk.type, &TypeText::text);
  if (known == std::end(types))
    return tl::unexpected(fmt::format("a watch event has the unknown type '{}'", walk.type.substr(0, 80)));
  walk.finish();
  WatchEvent out = std::move(walk.event);
  out.type = known->type;
  const bool has_object = out.type != WatchEvent::Type::bookmark && out.type != WatchEvent::Type::error;
  if (has_object && (out.object.uid.empty() || out.object.name.empty()))
    return tl::unexpected(std::string("the object of a watch event has no uid or no name"));
  if (out.type != WatchEvent::Type::error && out.object.resource_version.empty())
    return tl::unexpected(std::string("a watch event has no resourceVersion"));
  return out;
}

}  // namespace carve::kubernetes
