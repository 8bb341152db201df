// The kept response to a request with an Idempotency-Key (controller/api/idempotency.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/failure.h"

namespace carve::controller {

inline constexpr size_t max_kept_answers = 1000;
inline constexpr int64_t answer_lifetime_ns = 24LL * 3600 * 1'000'000'000;

struct KeptAnswer {
  std::string caller;  // Includes its role.
  std::string key;
  std::string sha256;  // Digest of the request, in hex.
  int64_t at_ns = 0;   // UTC.
  uint32_t status = 0;
  std::string type;
  std::string etag;  // Empty if there is none.
  std::string body;

  friend bool operator==(const KeptAnswer&, const KeptAnswer&) = default;
};

class AnswerJournal {
 public:
  virtual ~AnswerJournal() = default;
  virtual Outcome<std::optional<KeptAnswer>> find(const std::string& caller, const std::string& key) = 0;
  // Writes the response in one transaction, and deletes responses that are too old or too many.
  virtual Outcome<void> write(const KeptAnswer&) = 0;
};

}  // namespace carve::controller
