// Responses of Kubernetes' API server to a client that needs little more than metadata: pages of a list, and the
// lines of a watch. The forms are those of the API concepts ("Efficient detection of changes", meta.k8s.io/v1
// PartialObjectMetadata). Only the fields below are read; the rest of a document is skipped or kept as text.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/result.h"

namespace carve::kubernetes {

// An object's metadata.
struct ObjectMeta {
  std::string name_space;  // Empty if the kind has no namespaces.
  std::string name;
  std::string uid;
  std::string resource_version;
  std::map<std::string, std::string> labels;
  std::map<std::string, std::string> annotations;
  std::string controller_uid;  // The controlling owner's uid; empty if there is none.
  bool is_deleting = false;    // It has a deletionTimestamp.
  uint64_t created = 0;        // creationTimestamp as YYYYMMDDhhmmss, or 0 if absent.
  std::string nominated_node;  // From a pod's status; empty if absent or if only metadata was requested.
  std::string document;        // The whole object as JSON; empty unless the selection keeps documents.

  friend bool operator==(const ObjectMeta&, const ObjectMeta&) = default;
};
using ObjectsByUid = std::map<std::string, ObjectMeta>;

struct ListPage {
  std::vector<ObjectMeta> items;
  std::string resource_version;  // Version of the whole list.
  std::string next;              // The token `continue`; empty on the last page.
};

struct WatchEvent {
  enum class Type { added, modified, deleted, bookmark, error };
  Type type = Type::error;
  ObjectMeta object;    // A bookmark sets only resource_version.
  uint32_t code = 0;    // HTTP status of an error.
  std::string message;  // Message of an error.
};

// The object Status, which the server returns when a request fails.
struct ApiStatus {
  std::string reason;  // "AlreadyExists"
  std::string message;
};

// The version of an API server, as returned by GET /version.
struct ServerVersion {
  unsigned major = 0, minor = 0;
  std::string text;  // "1.36.2"

  friend auto operator<=>(const ServerVersion& a, const ServerVersion& b) {
    return std::tie(a.major, a.minor) <=> std::tie(b.major, b.minor);
  }
};

// Limit for hostile input. No object of the API is nested this deep.
inline constexpr size_t max_json_depth = 64;

// Keys of the labels and annotations to read. If empty, all are read.
using KeptKeys = std::span<const std::string_view>;

// Parses the body of a list. Fails with a message.
Result<ListPage, std::string> read_list_page(std::string_view json, KeptKeys = {});
// Set the objects' documents in the result of the same text, which must be valid.
void keep_documents(std::string_view json, ListPage&);
void keep_document(std::string_view line, WatchEvent&);
Result<WatchEvent, std::string> read_watch_event(std::string_view line, KeptKeys = {});
// Parses one object, as returned by GET.
Result<ObjectMeta, std::string> read_object(std::string_view json);
// Parses the body of GET /version. Some vendors return a minor version such as "36+". Fails with a message.
Result<ServerVersion, std::string> read_server_version(std::string_view json);
// Returns empty strings if the JSON is not a Status.
ApiStatus read_status(std::string_view json);

}  // namespace carve::kubernetes
