// What `carve wait --for` waits for. Conditions are those of the object's status. The conditions Ready, Complete
// and Failed, which kubectl's users expect, follow from the phase of objects that don't have them. All functions
// are pure.
#pragma once

#include <string>

#include "cli/json_path.h"

namespace carve::cli {

struct WaitGoal {
  enum class Kind : uint8_t { condition, deletion, jsonpath };
  Kind kind = Kind::condition;
  std::string condition;       // "Ready"
  std::string value;           // "True"; for jsonpath, the expected text. Empty means any value.
  JsonTemplate json_template;  // For jsonpath.
};

// Parses "delete", "condition=Ready", "condition=Ready=False", "jsonpath={.status.phase}=Running".
Result<WaitGoal, std::string> parse_wait_goal(const std::string& text);

// Returns whether the object has reached a goal other than its deletion.
bool is_reached(const WaitGoal&, const api::Json& object);

}  // namespace carve::cli
