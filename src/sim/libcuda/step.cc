#include "sim/libcuda/step.h"

#include "sim/model/device_engine.h"

namespace carve::sim {
namespace {

// Creates a step that blocks its channel until an operation of another context is done.
Step gate_for(const Place& p) {
  Step gate;
  gate.op.kind = OpKind::host;
  gate.effect.host = true;
  gate.effect.gate = [context = std::weak_ptr(p.context), channel = p.channel,
                      sequence = p.sequence](uint64_t now) {
    const auto c = context.lock();
    const bool done = !c || c->destroyed.load() || complete(c->own_device(), c->index, channel, sequence);
    return done ? 0 : now + 100'000;
  };
  return gate;
}

}  // namespace

bool is_over(const Place& p) {
  if (!p.context || p.context->destroyed.load()) return true;
  Device& d = p.context->own_device();
  const Locked lock(d);
  advance(d, now_ns());
  return complete(d, p.context->index, p.channel, p.sequence);
}

CUresult submit_after(const std::shared_ptr<CUctx_st>& c, unsigned channel, std::span<const Place> places,
                      Step step, Place* out) {
  Op op = step.op;
  op.dependency_count = 0;
  for (const Place& p : places) {
    if (p.context != c) {
      Step gate = gate_for(p);
      if (const CUresult e = submit(*c, channel, gate.op, std::move(gate.effect), nullptr)) return e;
      continue;
    }
    if (p.channel == channel) continue;  // A channel preserves its own order.
    if (op.dependency_count == max_dependencies) {
      Op join = {};
      join.kind = OpKind::mark;
      join.dependency_count = op.dependency_count;
      std::copy(std::begin(op.dependencies), std::end(op.dependencies), join.dependencies);
      if (const CUresult e = submit(*c, channel, join, nullptr)) return e;
      op.dependency_count = 0;
    }
    op.dependencies[op.dependency_count++] = {static_cast<uint16_t>(p.channel), 0,
                                              static_cast<uint32_t>(p.sequence + 1)};
  }
  uint64_t sequence = 0;
  if (const CUresult e = submit(*c, channel, op, std::move(step.effect), &sequence)) return e;
  if (out) *out = {c, channel, sequence};
  return CUDA_SUCCESS;
}

}  // namespace carve::sim
