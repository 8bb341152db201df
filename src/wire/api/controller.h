// Documents of the controller's API, version 1: the controller itself, and the nodes that it knows. Memory is
// in whole bytes, times are UTC nanoseconds since 1970; names end in the unit.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/enforcement.h"
#include "core/reachability.h"

namespace carve::api {

// GET /v1/version of the controller
struct ControllerVersion {
  std::string program;  // "carve-controller"
  std::string version;  // "0.2.0"
  uint32_t pid = 0;
  std::string state;     // Directory of the database.
  std::string endpoint;  // "http://127.0.0.1:8470"; empty: the unix socket only.
  uint64_t started_ns = 0;
};

// A device as its agent last reported it.
struct NodeDevice {
  uint32_t index = 0;  // NVML's index on its node.
  std::string uuid;    // "GPU-..."
  std::string name;    // "NVIDIA A10"
  DeviceHealth health;
  uint64_t usable_bytes = 0;
  uint64_t free_bytes = 0;
};

// A node that the controller was started with. The devices and the number of slices are those of the last
// answer; they are absent until the agent has answered this controller once.
struct KnownNode {
  std::string name;
  std::string socket;  // Of its agent.
  Reachability reachability = Reachability::unknown;
  std::string problem;            // Why it is unreachable, as a sentence; else empty.
  std::string agent_version;      // Empty: the agent has never answered.
  uint64_t agent_started_ns = 0;  // 0: the agent has never answered.
  uint64_t first_seen_ns = 0;     // The first answer to any controller with this database; 0: none.
  uint64_t last_seen_ns = 0;      // The last answer; 0: none.
  std::vector<NodeDevice> devices;
  uint32_t slices = 0;  // Living slices that the controller's user may see.
};

// GET /v1/nodes of the controller, in the order of its command line
struct KnownNodeList {
  std::vector<KnownNode> nodes;
};

// POST /v1/tokens of the controller
struct TokenRequest {
  std::string name;
  std::string role = "viewer";  // "viewer", "user", "operator"
  std::string account;          // Empty: the caller's user name.
  uint32_t days = 30;           // 0: the token never expires.
};

// The answer to it: the only time that the token is shown.
struct TokenMade {
  std::string name;
  std::string token;  // "carve_" and 43 characters.
};

struct TokenView {
  std::string name;
  std::string role;
  std::string account;
  uint64_t created_ns = 0;
  uint64_t expires_ns = 0;  // 0: never.
};

// GET /v1/tokens of the controller
struct TokenList {
  std::vector<TokenView> items;
};

// POST /v1/services/NAME/modify of the controller: fields of the stored PAI-EAS document.
struct EasChanges {
  std::vector<std::string> changes;  // "metadata.instance=2"
};

// What a rule made of a field of a document.
struct TranslatedField {
  std::string field;    // "metadata.gpu_memory"
  std::string value;    // As the document has it: "20"
  std::string becomes;  // "spec.gpu.memory"; empty: nothing.
  std::string result;   // "20GB"
  std::string rule;     // A phrase: "lower case, with - for _"
};

// Where a dry run expects the slice of a new replica.
struct ReplicaPlacement {
  uint32_t replica = 0;           // Index.
  std::string node;               // Empty: it has room on no node now.
  std::vector<uint32_t> devices;  // Indexes.
  std::string sentence;           // Without a node: what each node lacks.
};

// One object of an applied document.
struct AppliedObject {
  std::string kind;  // "Service"
  std::string name;
  std::string namespace_;
  std::string action;  // "created", "configured", "unchanged"; "checked" of a dry run.
  std::vector<std::string> warnings;
  std::vector<ReplicaPlacement> placement;   // Of a dry run.
  std::vector<TranslatedField> translation;  // With explain=true.
};

// POST /v1/render of the controller: the documents as manifests of Kubernetes.
struct Rendered {
  std::string manifests;  // YAML, with a line `---` between two documents.
  std::vector<std::string> warnings;
};

// POST /v1/parameters of the controller: the parameters of a job, read from their text.
struct JobParameters {
  std::map<std::string, std::string> parameters;
  std::vector<std::string> warnings;
};

// POST /v1/documents of the controller
struct AppliedList {
  std::vector<AppliedObject> items;
};

}  // namespace carve::api
