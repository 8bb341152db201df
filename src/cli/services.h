// What the verbs for objects of the controller share: names, paths, waiting.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/verbs.h"
#include "wire/api/controller.h"
#include "wire/objects/kind.h"
#include "wire/objects/service_object.h"

namespace carve::cli {

struct ServiceList {
  std::vector<objects::Service> items;
};

// An object as the command line names it: "service a", "service/a", "svc/a".
struct ObjectName {
  objects::Kind kind = objects::Kind::service;
  std::string name;  // Empty: all of the kind.
  std::string name_space = "default";

  std::string text() const;  // "service/a"
};
// Returns the names of "service a b" or "service/a service/b", or a sentence about the wrong word.
Result<std::vector<ObjectName>, std::string> parse_objects(const std::vector<std::string>& words,
                                                           const std::string& name_space = "default");
// Returns the name, or a sentence about the wrong word; a second name is one.
Result<ObjectName, std::string> parse_object(const std::vector<std::string>& words,
                                             const std::string& name_space = "default");
// The same for verbs that need a name: prints what is wrong, and sets the exit status.
std::optional<ObjectName> required_object(Context& context, const std::vector<std::string>& words,
                                          const std::string& name_space);
// Returns the name if the words name slices, which the agent has: "slices", "slice/a", "slice a". Empty: all.
std::optional<std::string> slice_named(const std::vector<std::string>& words);
// Returns the object that an applied document made.
ObjectName name_of(const api::AppliedObject& applied);

// Returns the services or applications of all namespaces.
client::Answer<std::vector<objects::Service>> workloads(const client::Client& controller, objects::Kind kind);

// Returns how many replicas there shall be now: of an autoscaled service what its load needs.
uint32_t wanted_replicas(const objects::Service&);

// Returns "/v1/services".
std::string list_path(objects::Kind kind);
// Returns "/v1/services/a/logs?namespace=b&...".
std::string object_path(const ObjectName& object, const std::string& verb = "",
                        const std::string& query = "");

// Returns the object of an EAS service's name: lower case, with - for _.
ObjectName eas_object(std::string name);

// Returns the text with %XX for all but letters, digits and -._~ (RFC 3986, section 2.3).
std::string percent_encoded(std::string_view text);

// Adds `--wait[=TIME]`, which sets `time`: "10m" without a value.
void add_wait(CLI::App* verb, std::string& time, const char* help);
unsigned seconds_of(const std::string& time);  // That the command line has checked.

// Waits until the workload is as its object asks: `Running`, or `Stopped`. Prints each change of its state on
// standard error if it is a terminal or `progress` is set. Returns false, with a sentence printed, if it
// failed or the time is over.
bool wait_for_workload(Context& context, const ObjectName& object, unsigned timeout_seconds, bool progress);

}  // namespace carve::cli
