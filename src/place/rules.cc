#include "place/rules.h"

#include <bit>
#include <iterator>
#include <utility>

namespace carve::place {

static_assert(max_isolated_slices == 16, "the number is part of a rule's name");
namespace {

constexpr NodeRule of_node[] = {
    {[](const NodeState& n, const RequestShape&) { return n.up; }, "down",
     [](const Fleet&, const NodeState&, const RequestShape&) { return std::string("the node is down"); }},
    {[](const NodeState& n, const RequestShape& a) {
       return a.devices == 0 || n.mixed || (a.models >> n.model & 1) != 0;
     },
     "other model",
     [](const Fleet& f, const NodeState& n, const RequestShape&) {
       return fmt::format("its devices are {}, a model that the request does not allow",
                          f.model_name(n.model));
     }},
    {[](const NodeState& n, const RequestShape& a) { return (a.kinds >> n.kind & 1) != 0; }, "other mode",
     [](const Fleet&, const NodeState&, const RequestShape&) {
       return std::string("the node's mode does not provide the requested isolation");
     }},
    {[](const NodeState& n, const RequestShape& a) {
       return a.policy == any_policy || n.policy == any_policy || a.policy == n.policy;
     },
     "other policy",
     [](const Fleet&, const NodeState& n, const RequestShape& a) {
       return fmt::format("the request needs policy {}, but the node's effective policy is {}",
                          text(static_cast<carve::Policy>(a.policy)),
                          text(static_cast<carve::Policy>(n.policy)));
     }},
    {[](const NodeState& n, const RequestShape& a) { return a.devices == 0 || !a.isolated || n.isolates; },
     "no isolation",
     [](const Fleet&, const NodeState&, const RequestShape&) {
       return std::string(
           "the node does not isolate memory: request isolation none, or install the agent on it");
     }},
    {[](const NodeState& n, const RequestShape& a) { return a.devices <= n.devices; }, "too few devices",
     [](const Fleet&, const NodeState& n, const RequestShape& a) {
       return fmt::format("{} devices needed, but the node has {}", a.devices, n.devices);
     }},
    {[](const NodeState& n, const RequestShape& a) { return a.cpu_milli <= n.cpu_free; }, "cpu",
     [](const Fleet&, const NodeState& n, const RequestShape& a) {
       return fmt::format("{}m of CPU needed, {}m free", a.cpu_milli, n.cpu_free);
     }},
    {[](const NodeState& n, const RequestShape& a) { return a.host_memory <= n.host_free; }, "host memory",
     [](const Fleet&, const NodeState& n, const RequestShape& a) {
       return fmt::format("{} of host memory needed, {} free", text(a.host_memory).c_str(),
                          text(n.host_free).c_str());
     }},
};

constexpr DeviceRule of_device[] = {
    {[](const DeviceState&, uint32_t number, const RequestShape& a) {
       return a.only == any_device || a.only == number;
     },
     "other device",
     [](const DeviceState&, const RequestShape&, const DeviceText& w) {
       return fmt::format("the request names {}", w.named);
     }},
    {[](const DeviceState& c, uint32_t, const RequestShape& a) {
       return c.model == node_model || (a.models >> c.model & 1) != 0;
     },
     "device model",
     [](const DeviceState&, const RequestShape&, const DeviceText&) {
       return std::string("it is a model that the request does not allow");
     }},
    {[](const DeviceState& c, uint32_t, const RequestShape&) { return !c.sick; }, "unhealthy",
     [](const DeviceState&, const RequestShape&, const DeviceText& w) { return std::string(w.trouble); }},
    {[](const DeviceState& c, uint32_t, const RequestShape&) { return !c.partitioned; }, "MIG mode",
     [](const DeviceState&, const RequestShape&, const DeviceText&) {
       return std::string("the device is in MIG mode and cannot be sliced: run `nvidia-smi -mig 0`");
     }},
    {[](const DeviceState& c, uint32_t, const RequestShape& a) {
       return a.policy == any_policy || c.policy == any_policy || a.policy == c.policy;
     },
     "policy",
     [](const DeviceState& c, const RequestShape& a, const DeviceText&) {
       return fmt::format("the request needs policy {}, but the device's effective policy is {}",
                          text(static_cast<carve::Policy>(a.policy)),
                          text(static_cast<carve::Policy>(c.policy)));
     }},
    {[](const DeviceState& c, uint32_t, const RequestShape& a) { return need(a, c) <= c.usable; },
     "too small",
     [](const DeviceState& c, const RequestShape& a, const DeviceText&) {
       return fmt::format("{} needed, {} usable", text(need(a, c)).c_str(), text(c.usable).c_str());
     }},
    {[](const DeviceState& c, uint32_t, const RequestShape& a) {
       return !a.isolated || c.context <= need(a, c);
     },
     "less than a context",
     [](const DeviceState& c, const RequestShape& a, const DeviceText&) {
       return fmt::format(
           "{} is less than the {} that one context takes on it; request at least {}, or start carved with "
           "--context-charge reserve",
           text(need(a, c)).c_str(), text(c.context).c_str(), text(c.context).c_str());
     }},
    {[](const DeviceState& c, uint32_t, const RequestShape& a) { return a.spill.count == 0 || c.migrates; },
     "no migration",
     [](const DeviceState&, const RequestShape&, const DeviceText&) {
       return std::string(
           "its driver cannot move managed memory to the host (no concurrent managed access): omit "
           "--oversubscribe");
     }},
    {[](const DeviceState& c, uint32_t, const RequestShape&) { return !c.exclusive; }, "exclusive",
     [](const DeviceState&, const RequestShape&, const DeviceText&) {
       return std::string("an exclusive slice holds the device");
     }},
    {[](const DeviceState& c, uint32_t, const RequestShape& a) { return !a.exclusive || c.slices == 0; },
     "shared",
     [](const DeviceState& c, const RequestShape&, const DeviceText&) {
       return fmt::format("{} slice{} on it, but the request is exclusive", c.slices,
                          c.slices == 1 ? "" : "s");
     }},
    {[](const DeviceState& c, uint32_t, const RequestShape& a) { return !a.best_effort || !c.shared_out; },
     "no share",
     [](const DeviceState&, const RequestShape&, const DeviceText&) {
       return std::string(
           "compute shares are enforced and the request has none: add --compute 20%, or start carved "
           "without --best-effort refuse");
     }},
    {[](const DeviceState& c, uint32_t, const RequestShape& a) {
       return !a.isolated || a.exclusive || c.isolated < max_isolated_slices;
     },
     "16 slices on every device",
     [](const DeviceState&, const RequestShape&, const DeviceText&) {
       return fmt::format("it has {} isolated slices, the maximum", max_isolated_slices);
     }},
    // Memory and compute must be free on the same device.
    {[](const DeviceState& c, uint32_t, const RequestShape& a) { return need(a, c) <= c.free; }, "memory",
     [](const DeviceState& c, const RequestShape& a, const DeviceText&) {
       return fmt::format("{} needed, {} free", text(need(a, c)).c_str(), text(c.free).c_str());
     }},
    {[](const DeviceState& c, uint32_t, const RequestShape& a) { return needed_share(a) <= c.free_share; },
     "compute",
     [](const DeviceState& c, const RequestShape& a, const DeviceText&) {
       return fmt::format("{} of its compute needed, {} free", text(needed_share(a)).c_str(),
                          text(c.free_share).c_str());
     }},
};

// Evaluates all rows. The loop is unrolled by the compiler: the predicates' addresses are constants and are
// inlined.
template <const auto& table, class... A>
bool all_hold(const A&... a) {
  return [&]<size_t... row>(std::index_sequence<row...>) {
    return (table[row].holds(a...) && ...);
  }(std::make_index_sequence<std::size(table)>());
}

}  // namespace

std::span<const NodeRule> node_rules() { return of_node; }
std::span<const DeviceRule> device_rules() { return of_device; }

bool needs_one_size(const RequestShape& shape) {
  return shape.parts.empty() && shape.part.basis_points != 0 && shape.devices > 1 && !shape.exclusive;
}

namespace {

// Returns the largest subset of devices that have the same amount of usable memory. Ties go to the subset with
// the lowest-numbered device.
DeviceSet of_one_size(DeviceSet set, std::span<const DeviceState> devices) {
  DeviceSet out = 0;
  for (DeviceSet left = set; left != 0;) {
    const Bytes size = devices[static_cast<size_t>(std::countr_zero(left))].usable;
    DeviceSet same = 0;
    for (DeviceSet s = left; s != 0; s &= s - 1)
      if (devices[static_cast<size_t>(std::countr_zero(s))].usable == size) same = same | (s & -s);
    if (std::popcount(same) > std::popcount(out)) out = same;
    left = left & ~same;
  }
  return out;
}

}  // namespace

namespace {

DeviceSet fitting_each(const Fleet& fleet, uint32_t n, const RequestShape& shape) {
  invariant(shape.parts.empty(), "the rules read equal amounts");
  DeviceSet set = 0;
  const auto devices = fleet.devices(n);
  for (unsigned i = 0; i < devices.size(); ++i)
    if (all_hold<of_device>(devices[i], fleet.node(n).first + i, shape)) set = set | 1u << i;
  return set;
}

}  // namespace

DeviceSet fitting_part(const Fleet& fleet, uint32_t n, const RequestShape& shape, unsigned part) {
  if (!shape.parts.empty()) return fitting_each(fleet, n, shape_of_part(shape, part));
  const DeviceSet set = fitting_each(fleet, n, shape);
  return needs_one_size(shape) ? of_one_size(set, fleet.devices(n)) : set;
}

std::optional<FittingDevices> fitting(const Fleet& fleet, uint32_t n, const RequestShape& shape) {
  if (!all_hold<of_node>(fleet.node(n), shape)) return std::nullopt;
  FittingDevices out;
  out.parts = shape.devices;
  if (shape.parts.empty() && shape.devices != 0) out.any = fitting_part(fleet, n, shape, 0);
  for (unsigned i = 0; i < shape.parts.size(); ++i) {
    out.of_part.push_back(fitting_part(fleet, n, shape, i));
    out.any |= out.of_part.back();
  }
  if (!can_serve(out)) return std::nullopt;
  return out;
}

}  // namespace carve::place
