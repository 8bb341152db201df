// Documents of the API, version 1: what the slices of one user, or of one account, may hold together on this node.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/share.h"
#include "wire/api/json.h"

namespace carve::api {

// The user of a limit that applies to each user except root who has no limit of its own.
inline constexpr const char* every_user = "*";

// The limit of a user or of an account. Exactly one of `user` and `account` is set. An absent amount is not limited.
struct Limit {
  std::string user;             // A user's name, or "*".
  std::optional<uint32_t> uid;  // The user's. Absent for "*" and for an account.
  std::string account;
  std::optional<Bytes> memory;      // The sum over all devices.
  std::optional<Share> share;       // The sum over all devices, so it may be above 100 %.
  std::optional<uint32_t> slices;   // The number of slices that exist at the same time.
  std::optional<uint32_t> devices;  // The number of devices on which the slices are.

  bool operator==(const Limit&) const = default;
};

// PATCH /v1/limits. Amounts that the change does not contain keep their limit.
struct LimitChange {
  Limit limit;
  std::vector<std::string> unlimited;  // Amounts whose limit is removed: memory, share, slices, devices.
};

struct HeldAmounts {
  Bytes memory;
  Share share;
  uint32_t slices = 0;
  uint32_t devices = 0;

  bool operator==(const HeldAmounts&) const = default;
};

struct LimitView {
  Limit limit;
  std::optional<HeldAmounts> held;  // Held now. Absent in the list of all limits for the user "*".
};

// GET /v1/limits
struct LimitList {
  std::vector<LimitView> items;
};

}  // namespace carve::api

CARVE_DECLARE_DOCUMENT(api::Limit)
CARVE_DECLARE_DOCUMENT(api::LimitChange)
CARVE_DECLARE_DOCUMENT(api::LimitList)
