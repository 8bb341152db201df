// An API server with one kind of object, for simulations: it serves paged lists and watches from a version,
// keeps only its newest changes, and fails on demand.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace carve::kubernetes {

class ApiServerModel {
 public:
  std::map<std::string, uint64_t> objects;  // Versions by name; the uid is the name.
  uint64_t version = 1;
  uint64_t oldest_kept = 1;  // Changes up to here cannot be watched, and older lists cannot be continued.

  void put(const std::string& name) {
    const bool is_new = !objects.contains(name);
    objects[name] = ++version;
    log_.push_back({version, line(is_new ? "ADDED" : "MODIFIED", name)});
  }
  void remove(const std::string& name) {
    if (objects.erase(name) == 0) return;
    ++version;
    log_.push_back({version, line("DELETED", name)});
  }
  void compact() {
    oldest_kept = version;
    std::erase_if(log_, [&](const Change& change) { return change.version <= oldest_kept; });
  }

  // Returns a page of at most `page` objects, or no value if the continue token has expired (410 Gone). All
  // pages of a list have the resource version of its first page.
  std::optional<std::string> list(const std::string& target, size_t page) {
    const std::string token = parameter(target, "continue");
    uint64_t at = version;
    std::string after;
    if (!token.empty()) {
      at = std::stoull(token.substr(0, token.find('-')));
      after = token.substr(token.find('-') + 1);
      if (at < oldest_kept || !lists_.contains(at)) return std::nullopt;
    } else {
      lists_[at] = objects;
    }
    std::string items, last;
    size_t count = 0;
    auto next = lists_[at].upper_bound(after);
    for (; next != lists_[at].end() && count < page; ++next, ++count) {
      items += fmt::format("{}{}", items.empty() ? "" : ",", object(next->first, next->second));
      last = next->first;
    }
    const std::string more = next == lists_[at].end() ? "" : fmt::format("{}-{}", at, last);
    return fmt::format(
        R"({{"kind":"PartialObjectMetadataList","metadata":{{"resourceVersion":"{}","continue":"{}"}},"items":[{}]}})",
        at, more, items);
  }

  // Returns the lines for the changes after version `from`, or no value for 410.
  std::optional<std::vector<std::string>> watch(uint64_t from) const {
    if (from < oldest_kept) return std::nullopt;
    std::vector<std::string> out;
    for (const Change& change : log_)
      if (change.version > from) out.push_back(change.line);
    return out;
  }
  std::string bookmark() const {
    return fmt::format(R"({{"type":"BOOKMARK","object":{{"metadata":{{"resourceVersion":"{}"}}}}}})",
                       version);
  }

  static std::string parameter(const std::string& target, const std::string& name) {
    const size_t found = target.find(name + "=");
    if (found == std::string::npos) return "";
    const size_t begin = found + name.size() + 1;
    return target.substr(begin, target.find('&', begin) - begin);
  }

 private:
  struct Change {
    uint64_t version;
    std::string line;
  };
  static std::string object(const std::string& name, uint64_t at) {
    return fmt::format(
        R"({{"metadata":{{"name":"{0}","uid":"{0}","namespace":"n","resourceVersion":"{1}"}}}})", name, at);
  }
  std::string line(const char* type, const std::string& name) const {
    return fmt::format(R"({{"type":"{}","object":{}}})", type, object(name, version));
  }

  std::deque<Change> log_;
  std::map<uint64_t, std::map<std::string, uint64_t>> lists_;  // Objects of the first page, by version.
};

}  // namespace carve::kubernetes
