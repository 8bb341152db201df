// Answers of Kubernetes' API server to a client that wants metadata alone: pages of a list, and the lines of
// a watch. The forms are those of the API concepts ("Efficient detection of changes", meta.k8s.io/v1
// PartialObjectMetadata): only what is named here is kept, and nothing is built of the rest.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/result.h"

namespace carve::kube {

// An object's metadata.
struct ObjectMeta {
  std::string name_space;  // Empty: the kind has none.
  std::string name;
  std::string uid;
  std::string resource_version;
  std::map<std::string, std::string> labels;
  std::map<std::string, std::string> annotations;
  std::string controller_uid;  // Of the owner that controls it; empty: none.
  bool is_deleting = false;    // It has a deletionTimestamp.
  uint64_t created = 0;        // creationTimestamp as YYYYMMDDhhmmss; 0: it has none.
  std::string nominated_node;  // Of a pod's status; empty without one, and if metadata alone was asked for.

  friend bool operator==(const ObjectMeta&, const ObjectMeta&) = default;
};
using ObjectsByUid = std::map<std::string, ObjectMeta>;

struct ListPage {
  std::vector<ObjectMeta> items;
  std::string resource_version;  // Of the whole list.
  std::string next;              // The token `continue`; empty: this is the last page.
};

struct WatchEvent {
  enum class Type { added, modified, deleted, bookmark, error };
  Type type = Type::error;
  ObjectMeta object;    // Of a bookmark the version alone.
  uint32_t code = 0;    // Of an error: its HTTP status.
  std::string message;  // The same.
};

// The object Status, which an answer has that is no success.
struct ApiStatus {
  std::string reason;  // "AlreadyExists"
  std::string message;
};

// The version of an API server, as GET /version answers it.
struct ServerVersion {
  unsigned major = 0, minor = 0;
  std::string text;  // "1.36.2"

  friend auto operator<=>(const ServerVersion& a, const ServerVersion& b) {
    return std::tie(a.major, a.minor) <=> std::tie(b.major, b.minor);
  }
};

// Hostile input ends here: deeper than any object of the API.
inline constexpr size_t max_json_depth = 64;

// Which labels and annotations of an object are read: those with these keys; empty: all.
using KeptKeys = std::span<const std::string_view>;

// Reads the body of a list, and a line of a watch. Fails with a sentence.
Result<ListPage, std::string> read_list_page(std::string_view json, KeptKeys = {});
Result<WatchEvent, std::string> read_watch_event(std::string_view line, KeptKeys = {});
// Reads one object, as a GET answers it.
Result<ObjectMeta, std::string> read_object(std::string_view json);
// Fails with a sentence. The minor version of some vendors is "36+".
Result<ServerVersion, std::string> read_server_version(std::string_view json);
// Returns empty texts for what is no Status.
ApiStatus read_status(std::string_view json);

}  // namespace carve::kube
