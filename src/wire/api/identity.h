// Documents of the API, version 1: who the caller is, and what it may do.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "wire/api/controller.h"
#include "wire/api/json.h"
#include "wire/api/limit.h"

namespace carve::api {

// GET /v1/whoami of the agent
struct Identity {
  std::string user;
  uint32_t uid = 0;
  bool is_operator = false;       // May see and change the slices of all users, and the node.
  std::string reason;             // Why the caller is an operator. Empty if it is none.
  std::vector<LimitView> limits;  // The limits of the user and of the account with the user's name.
};

// The output of `carve whoami`. A program that does not respond is absent.
struct WhoAmI {
  std::optional<Identity> agent;
  std::optional<SessionView> controller;
};

// GET /v1/access of the controller: whether the caller may use the verb on objects of the kind.
struct Access {
  bool is_allowed = false;
  std::string
      objects;  // "all", "own" (of the caller and its account), or the name in the request. Empty if none.
  std::string reason;  // The message of the refusal. Empty if allowed.
};

}  // namespace carve::api

CARVE_DECLARE_DOCUMENT(api::Identity)
CARVE_DECLARE_DOCUMENT(api::WhoAmI)
CARVE_DECLARE_DOCUMENT(api::Access)
