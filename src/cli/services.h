// Helpers shared by the verbs for the controller's objects: names, paths, waiting.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/verbs.h"
#include "objects/kind.h"
#include "objects/service_object.h"
#include "wire/api/controller.h"

namespace carve::cli {

struct ServiceList {
  std::vector<objects::Service> items;
};

// An object on the command line: "service a", "service/a", "svc/a".
struct ObjectName {
  objects::Kind kind = objects::Kind::service;
  std::string name;  // Empty for all objects of the kind.
  std::string name_space = "default";

  std::string text() const;  // "service/a"

  friend bool operator==(const ObjectName&, const ObjectName&) = default;
};
// Returns the names of "service a b" or "service/a service/b", or a message about the wrong word.
Result<std::vector<ObjectName>, std::string> parse_objects(const std::vector<std::string>& words,
                                                           const std::string& name_space = "default");
// Also accepts kinds without names: "services,jobs" and "all".
Result<std::vector<ObjectName>, std::string> parse_targets(const std::vector<std::string>& words,
                                                           const std::string& name_space);
// Returns the name, or a message about the wrong word. A second name is rejected.
Result<ObjectName, std::string> parse_object(const std::vector<std::string>& words,
                                             const std::string& name_space = "default");
// The same for verbs that need a name: prints the error, and sets the exit status.
std::optional<ObjectName> required_object(Context& context, const std::vector<std::string>& words,
                                          const std::string& name_space);
// Returns the name if the words name slices, which are served by the agent: "slices", "slice/a", "slice a".
// An empty name means all slices.
std::optional<std::string> slice_named(const std::vector<std::string>& words);
// Returns the name of the object that was applied.
ObjectName name_of(const api::AppliedObject& applied);

// Returns the services or applications of all namespaces.
client::Answer<std::vector<objects::Service>> workloads(const client::Client& controller, objects::Kind kind);

// Prints the table of all objects of a kind, as `carve get` does.
void print_all(Context& context, objects::Kind kind);

// Returns the currently desired number of replicas; for an autoscaled service, the number that its load
// requires.
uint32_t wanted_replicas(const objects::Service&);

// Returns "/v1/services".
std::string list_path(objects::Kind kind);
// Returns "/v1/services/a/logs?namespace=b&...".
std::string object_path(const ObjectName& object, const std::string& verb = "",
                        const std::string& query = "");

// Returns the object with the name of an EAS service: lower case, with '-' instead of '_'.
ObjectName eas_object(std::string name);

// Adds `--wait[=TIME]`, which sets `time`; the default without a value is "10m".
void add_wait(CLI::App* verb, std::string& time, const char* help);
unsigned seconds_of(const std::string& time);  // The text must be valid.

// Waits until the workload reaches its desired state, `Running` or `Stopped`. Prints each change of its state
// on standard error. Prints a message and returns false if the
// workload fails or the time limit passes.
bool wait_for_workload(Context& context, const ObjectName& object, unsigned timeout_seconds);

}  // namespace carve::cli
