#include "kubernetes/node/dra/claim_preparer.h"

#include <algorithm>

#include "kubernetes/node/rules/advertisement.h"
#include "kubernetes/node/rules/container_start.h"

namespace carve::kubernetes::node {
namespace {

constexpr int64_t first_wait_ns = 50'000'000, max_wait_ns = 1'000'000'000;

}  // namespace

ClaimPreparer::Round ClaimPreparer::try_once(const ClaimName& name) {
  const auto text = sources_.claim(name);
  if (!text) return {.message = text.error(), .may_change = true};
  if (!*text) return {.message = fmt::format("claim {}: there is no such claim", name.text())};
  auto claim = read_claim(**text);
  if (!claim) return {.message = claim.error()};
  if (claim->name.uid != name.uid)
    return {.message = fmt::format("claim {}: it was deleted and created again; its uid is {}, not {}",
                                   name.text(), claim->name.uid.substr(0, 63), name.uid.substr(0, 63))};
  const auto report = agent_.report();
  if (!report) return {.message = report.error().detail, .may_change = true, .claim = std::move(*claim)};
  auto decision =
      decide_claim({.node = sources_.node, .mode = stored_mode(*report), .devices = report->devices}, *claim);
  if (!decision) return {.message = decision.error(), .claim = std::move(*claim)};
  return grant(std::move(*claim), std::move(*decision));
}

ClaimPreparer::Round ClaimPreparer::grant(SeenClaim claim, ClaimDecision decision) {
  Round out;
  const auto slice = agent_.grant(decision.request);
  const auto refuse = [&](const api::Problem& problem) {
    out.message = fmt::format("claim {}: {}", claim.name.text(), problem.detail);
    out.may_change = may_pass(problem);
    out.has_no_room = problem.type == shown(FailureKind::insufficient_capacity).type;
  };
  if (!slice) {
    refuse(slice.error());
  } else if (const auto set = agent_.set_pods(slice->name, {.pods = claim.pods}); !set) {
    refuse(set.error());
  } else {
    sources_.granted(claim, *slice);
    out.devices = std::move(decision.devices);
  }
  out.claim = std::move(claim);
  return out;
}

Result<std::vector<PreparedDevice>, std::string> ClaimPreparer::prepare(
    const ClaimName& name, int64_t end, const std::function<bool()>& is_over) {
  int64_t wait = first_wait_ns;
  while (true) {
    Round round = try_once(name);
    if (round.message.empty()) return std::move(round.devices);
    const bool may_wait = round.may_change && !is_over() && sources_.now() + wait <= end;
    if (may_wait) sources_.sleep(wait);
    if (!may_wait || is_over()) {
      sources_.refused(round.claim, round.message, round.has_no_room);
      return tl::unexpected(round.message);
    }
    wait = std::min(wait * 2, max_wait_ns);
  }
}

Result<void, std::string> ClaimPreparer::unprepare(const ClaimName& name) {
  const auto report = agent_.report();
  if (!report) return tl::unexpected(fmt::format("claim {}: {}", name.text(), report.error().detail));
  for (const api::Slice& slice : report->slices) {
    if (slice.state == SliceState::ended || !slice.holder || slice.holder->claim != name.uid) continue;
    const auto done = agent_.end_when_empty(slice.name);
    // It may have ended since the report.
    if (!done && done.error().status != 404)
      return tl::unexpected(fmt::format("claim {}: {}", name.text(), done.error().detail));
  }
  return {};
}

}  // namespace carve::kubernetes::node
