// What the verbs for services share: paths, reading, waiting.
#pragma once

#include <string>
#include <vector>

#include "cli/verbs.h"
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
};
// Returns the name, or a sentence about the wrong word.
Result<ObjectName, std::string> parse_object(const std::vector<std::string>& words);

// Returns "/v1/services/a/logs?namespace=b&...".
std::string service_path(const std::string& name, const std::string& verb, const std::string& name_space,
                         const std::string& query = "");

// Returns the text with %XX for all but letters, digits and -._~ (RFC 3986, section 2.3).
std::string percent_encoded(std::string_view text);

// Waits until the service is as its object asks: `Running`, or `Stopped`. Prints each change of its state on
// standard error if it is a terminal or `progress` is set. Returns false, with a sentence printed, if it
// failed or the time is over.
bool wait_for_service(Context& context, const std::string& name, const std::string& name_space,
                      unsigned timeout_seconds, bool progress);

}  // namespace carve::cli
