// Prepares resource claims for kubelet: it reads the claim on the API server, has the agent grant the claim's slice
// and returns the claim's devices. rules/resource_claim.h decides; this class makes the calls and repeats them for
// up to 40 s while the result may change, because kubelet gives up after 45 s and calls again only 77 s later.
// A claim has one slice in the agent's ledger, identified by the claim's uid, so every call may be repeated.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "kubernetes/node/agent_api.h"
#include "kubernetes/node/rules/resource_claim.h"

namespace carve::kubernetes::node {

inline constexpr int64_t max_prepare_ns = 40'000'000'000;

class ClaimPreparer {
 public:
  // The text of a claim. No value if the API server has no claim of that name.
  using ClaimAnswer = Result<std::optional<std::string>, std::string>;
  // Functions that read and change other programs' state. All are called concurrently in the driver's threads, and
  // may block.
  struct Sources {
    std::string node;
    std::function<ClaimAnswer(const ClaimName&)> claim;  // Fails if the API server does not respond.
    std::function<void(const SeenClaim&, const api::Slice&)> granted;
    // Called once for each call that fails. The claim is known if it could be read.
    std::function<void(const std::optional<SeenClaim>&, const std::string& message, bool has_no_room)>
        refused;
    std::function<int64_t()> now;
    std::function<void(int64_t ns)> sleep;
  };

  ClaimPreparer(AgentApi& agent, Sources sources) : agent_(agent), sources_(std::move(sources)) {}

  // Returns the claim's devices on this node after the agent has granted its slice. `end` is a time of
  // Sources::now; `is_over` returns whether kubelet has stopped waiting. On failure the message is for the pod's
  // user.
  Result<std::vector<PreparedDevice>, std::string> prepare(const ClaimName&, int64_t end,
                                                           const std::function<bool()>& is_over);
  // Lets the claim's slice end with its last process. Succeeds if there is none.
  Result<void, std::string> unprepare(const ClaimName&);

 private:
  // The outcome of one round, and whether the next round may have another outcome.
  struct Round {
    std::string message;  // Empty if the claim is prepared.
    bool may_change = false;
    bool has_no_room = false;
    std::optional<SeenClaim> claim;
    std::vector<PreparedDevice> devices;
  };
  Round try_once(const ClaimName&);
  Round grant(SeenClaim, ClaimDecision);

  AgentApi& agent_;
  const Sources sources_;
};

}  // namespace carve::kubernetes::node
