#include "core/attach_point.h"

namespace carve {
namespace {

constexpr std::string_view claim_prefix = "c-";

}  // namespace

AttachPoint AttachPoint::of_claim(const std::string& uid) {
  return {Kind::claim, std::string(claim_prefix) + uid};
}

std::string text(const AttachPoint& point) {
  if (point.kind == AttachPoint::Kind::slot) return "slot " + point.name;
  return "claim " + point.name.substr(claim_prefix.size());
}

}  // namespace carve
