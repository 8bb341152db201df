#include "controller/known_nodes.h"

#include <unistd.h>

#include <algorithm>

#include "os/clock.h"
#include "os/log.h"

namespace carve::controller {
namespace {

constexpr int64_t poll_interval_ns = 2 * os::second;

// Agents are reached over unix sockets, so they run on this machine.
workload::HostResources this_host() {
  const auto figure = [](int name) { return static_cast<uint64_t>(std::max(sysconf(name), 0L)); };
  return {.cpu_milli = figure(_SC_NPROCESSORS_ONLN) * 1000,
          .memory_bytes = figure(_SC_PHYS_PAGES) * figure(_SC_PAGESIZE)};
}

void write_log(const NodeChange& change) {
  if (change.level == NodeChange::Level::warning)
    os::log::warning("{}", change.text);
  else
    os::log::info("{}", change.text);
}

}  // namespace

KnownNodes::KnownNodes(os::Loop& loop, ControllerStore& store, const std::vector<NodeAddress>& addresses,
                       const std::vector<NodeRecord>& earlier, NodeSync& node_sync, Reported reported)
    : loop_(loop), store_(store), node_sync_(node_sync), reported_(std::move(reported)) {
  for (const NodeAddress& address : addresses) {
    const auto found = std::ranges::find(earlier, address.name, &NodeRecord::name);
    nodes_.push_back({.known = KnownNode(address, found != earlier.end() ? &*found : nullptr)});
  }
  for (size_t i = 0; i < nodes_.size(); ++i)
    nodes_[i].poller = std::make_unique<AgentPoller>(
        loop_, addresses[i].socket, [this, &node = nodes_[i]](const Poll& poll) { take(node, poll); });
}

KnownNodes::~KnownNodes() = default;

void KnownNodes::begin() {
  poll_all();
  loop_.every(poll_interval_ns, [this] { poll_all(); });
}

bool KnownNodes::begin_poll(const Node& node) {
  return node.poller->begin_poll(node_sync_.request_for(node.known.record().name));
}

void KnownNodes::poll() {
  node_sync_.turn(os::utc_ns());
  for (Node& node : nodes_) node.polls_again |= !begin_poll(node);
}

void KnownNodes::poll_all() {
  node_sync_.turn(os::utc_ns());
  for (const Node& node : nodes_)
    if (!begin_poll(node))
      os::log::debug("node {}: poll skipped; the previous poll is still in progress",
                     node.known.record().name);
}

void KnownNodes::take(Node& node, const Poll& poll) {
  for (const NodeChange& change : node.known.update(poll, this_host())) write_log(change);
  if (poll.answer && reported_) reported_(node.known.record().name, *poll.answer);
  if (poll.answer) node_sync_.answered(node.known.record().name, node.known.seen());
  node_sync_.turn(os::utc_ns());
  if (std::exchange(node.polls_again, false)) begin_poll(node);
  if (node.known.must_be_stored()) store(false);
}

void KnownNodes::store(bool all) {
  std::vector<NodeRecord> records;
  std::vector<KnownNode*> written;
  for (Node& node : nodes_)
    if (all ? node.known.differs_from_stored() : node.known.must_be_stored()) {
      records.push_back(node.known.record());
      written.push_back(&node.known);
    }
  const auto done = store_.write(records);
  if (!done && !store_failed_) os::log::error("{}; polling of the nodes continues", done.error().message);
  if (done && store_failed_) os::log::info("the controller database is writable again");
  store_failed_ = !done;
  if (done)
    for (KnownNode* known : written) known->was_stored();
}

void KnownNodes::end() {
  store(true);
  for (const Node& node : nodes_) node.poller->stop();
}

std::vector<NodeObservationPointer> KnownNodes::seen() const {
  std::vector<NodeObservationPointer> out;
  for (const Node& node : nodes_) out.push_back(node.known.seen());
  return out;
}

}  // namespace carve::controller
