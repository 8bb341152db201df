// Documents of the controller's API, version 1: the controller itself, and the nodes that it knows. Memory is
// in whole bytes, times are UTC nanoseconds since 1970; names end with the unit.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/enforcement.h"
#include "core/reachability.h"
#include "wire/api/json.h"

namespace carve::api {

// GET /v1/version of the controller
struct ControllerVersion {
  std::string program;  // "carve-controller"
  std::string version;  // "0.3.0"
  uint32_t pid = 0;
  std::string state;     // Directory of the database.
  std::string endpoint;  // "http://127.0.0.1:8470". Empty if only the unix socket serves.
  uint64_t started_ns = 0;
  bool console = false;  // Whether the endpoint serves the console.
};

// POST /v1/tokens of the controller
struct TokenRequest {
  std::string name;
  std::string role = "viewer";  // "viewer", "user", "operator"
  std::string account;          // If empty, the caller's user name.
  uint32_t days = 30;           // 0 means that the token never expires.
};

// The response to it, which is the only one that contains the token.
struct TokenMade {
  std::string name;
  std::string token;  // "carve_" and 43 characters.
};

// A token, or a session of a browser that is signed in to the console.
struct TokenView {
  std::string name;
  std::string role;
  std::string account;
  uint64_t created_ns = 0;
  uint64_t expires_ns = 0;  // 0 if the token never expires.
  bool session = false;     // Whether this is a session.
};

// GET /v1/tokens of the controller
struct TokenList {
  std::vector<TokenView> items;
};

// The response to POST /v1/codes of the controller: a code that signs a browser in with the caller's rights.
struct SignInCode {
  std::string code;
  std::string path;         // Path of the page that uses it: "/login?code=...".
  uint64_t expires_ns = 0;  // The code is valid until then, and for one session.
};

// POST /v1/session of the controller: exactly one of the two is set.
struct SignInRequest {
  std::string code;
  std::string token;
};

// GET /v1/session of the controller: the caller's rights.
struct SessionView {
  std::string name;  // Name of the session. Empty for a caller without one.
  std::string role;  // "viewer", "user", "operator"
  std::string account;
  uint64_t expires_ns = 0;  // 0 for a caller without a session.
  // A request of the session has the cookie and this key, as the header Carve-Page-Key. Only the response to
  // POST /v1/session contains it.
  std::string page_key;
};

// POST /v1/services/NAME/modify of the controller: changes of the stored PAI-EAS document. A document with a
// name replaces the stored document; a document without a name is merged into it. Then the fields are set.
struct EasChanges {
  std::vector<std::string> changes;  // "metadata.instance=2"
  std::string document;              // JSON or YAML. Empty if there is none.
};

// How a rule translated one field.
struct TranslatedField {
  std::string field;    // "metadata.gpu_memory"
  std::string value;    // As in the document: "20"
  std::string becomes;  // "spec.gpu.memory". Empty if the field has no counterpart.
  std::string result;   // "20GB"
  std::string rule;     // A phrase: "in lower case, with - instead of _"
};

// Where a dry run would place the slice of a new replica, or a slice of a new job or Ray cluster.
struct ReplicaPlacement {
  uint32_t replica = 0;                // The replica's or slice's index.
  std::string node;                    // Empty if no node has room now.
  std::vector<uint32_t> devices;       // Indexes.
  std::vector<uint64_t> memory_bytes;  // On each device. For a request in units, in the node's units.
  std::string message;                 // The missing resources of each node, if no node has room.
};

// One object of an applied document.
struct AppliedObject {
  std::string kind;  // "Service"
  std::string name;
  std::string namespace_;
  std::string action;  // "created", "configured", "unchanged"; in a dry run "checked".
  std::vector<std::string> warnings;
  std::vector<ReplicaPlacement> placement;   // In a dry run.
  std::vector<TranslatedField> translation;  // With explain=true.
  // With diff=true, as JSON: the stored object, absent if there is none, and the object that would be stored.
  std::optional<std::string> before, after;
};

// POST /v1/render of the controller: the documents as Kubernetes manifests.
struct Rendered {
  std::string manifests;  // YAML, with a line `---` between two documents.
  std::vector<std::string> warnings;
};

// POST /v1/parameters of the controller: the parameters of a job, parsed from their text.
struct JobParameters {
  std::map<std::string, std::string> parameters;
  std::vector<std::string> warnings;
};

// POST /v1/documents of the controller
struct AppliedList {
  std::vector<AppliedObject> items;
};

}  // namespace carve::api

CARVE_DECLARE_DOCUMENT(api::ControllerVersion)
CARVE_DECLARE_DOCUMENT(api::TokenRequest)
CARVE_DECLARE_DOCUMENT(api::TokenMade)
CARVE_DECLARE_DOCUMENT(api::TokenList)
CARVE_DECLARE_DOCUMENT(api::SignInCode)
CARVE_DECLARE_DOCUMENT(api::SignInRequest)
CARVE_DECLARE_DOCUMENT(api::SessionView)
CARVE_DECLARE_DOCUMENT(api::EasChanges)
CARVE_DECLARE_DOCUMENT(api::Rendered)
CARVE_DECLARE_DOCUMENT(api::JobParameters)
CARVE_DECLARE_DOCUMENT(api::AppliedList)
