// Reads resource claims by name on the API server. Claims are never listed or watched, because a cluster may have
// many more claims than a node uses.
#pragma once

#include <functional>
#include <map>
#include <memory>

#include "kubernetes/api/api_client.h"
#include "kubernetes/node/dra/claim_preparer.h"

namespace carve::kubernetes::node {

inline constexpr kubernetes::Nanoseconds claim_patience_ns = 2 * kubernetes::second_ns;

// Returns the claim's text from the response to a GET of it.
ClaimPreparer::ClaimAnswer claim_answer(const ClaimName&, const kubernetes::ApiAnswer&);

// Returns the path of the claim; no value if its namespace or name cannot be part of a path.
std::optional<std::string> claim_target(const ClaimName&);

class ClaimReader {
 public:
  explicit ClaimReader(kubernetes::ApiClient& client) : client_(client) {}

  // Must be called in the thread of the client's loop, in which `done` is called too.
  void read(const ClaimName&, std::function<void(ClaimPreparer::ClaimAnswer)> done);

 private:
  kubernetes::ApiClient& client_;
  uint64_t next_ = 0;
  std::map<uint64_t, std::unique_ptr<kubernetes::ApiCall>> calls_;
};

}  // namespace carve::kubernetes::node
