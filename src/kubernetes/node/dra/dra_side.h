// The threads of the DRA driver: its sockets, and what they do when kubelet prepares a claim.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kubernetes/node/dra/claim_preparer.h"
#include "kubernetes/node/dra/dra_plugin.h"
#include "kubernetes/node/rules/slice_events.h"

namespace carve::kubernetes::node {

class DraSide {
 public:
  // Functions of the rest of the program. All are thread-safe.
  struct Links {
    std::function<ClaimPreparer::ClaimAnswer(const ClaimName&)> claim;  // May block.
    std::function<void()> kubelet_asked;
    std::function<void(const std::string& problem)> registered;
    std::function<void()> expect_container;
    std::function<void(const EventNote&)> note;
  };

  DraSide(std::string node, DraSockets, AgentApi&, Links);
  ~DraSide();

  // The next functions must be called in one thread, and may block. Serves the sockets. Does nothing if they are
  // served and their files exist.
  void serve();
  // Removes the sockets. Returns false if they were not served.
  bool end();
  // Tells kubelet the health of the devices, if the agent responds.
  void report_health();

  // Sends the pods of the slice's claim to the agent. Returns false if the claim cannot be read now. May be called
  // in any thread except the loop's.
  bool look_up(const api::Slice&);

 private:
  DraHandlers handlers();
  ClaimPreparer::Sources sources();
  void granted(const SeenClaim&, const api::Slice&);
  void refused(const std::optional<SeenClaim>&, const std::string& message, bool has_no_room);
  std::string rivals(const SeenClaim&);  // The other claims and pods with slices on the claim's devices.

  const std::string node_;
  const DraSockets sockets_;
  AgentApi& agent_;
  const Links links_;
  ClaimPreparer preparer_;
  std::string last_problem_;
  std::unique_ptr<DraPlugin> plugin_;  // Declared last, because its threads use the other members.
};

// Returns "granted 2 GiB on device 0 (GPU-1a2b, NVIDIA A10); isolation memory, enforcement library".
std::string grant_note(const api::Slice&);

}  // namespace carve::kubernetes::node
