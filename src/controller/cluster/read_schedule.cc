#include "controller/cluster/read_schedule.h"

#include <algorithm>

#include "core/invariant.h"

namespace carve::controller {
namespace {

using kubernetes::second_ns;

constexpr kubernetes::Nanoseconds hurry_ns = 5 * second_ns;

}  // namespace

ReadSchedule::Nanoseconds ReadSchedule::between(Nanoseconds from, Nanoseconds to) {
  return std::uniform_int_distribution<Nanoseconds>(from, std::max(from, to))(random_);
}

void ReadSchedule::set_due(const std::string& name, Node& node, Nanoseconds due) {
  queue_.erase({node.due, name});
  node.due = due;
  queue_.insert({due, name});
}

void ReadSchedule::add(const std::string& name, Nanoseconds now) {
  const auto [node, is_new] = nodes_.try_emplace(name);
  if (!is_new) return;
  if (removed_.erase(name) != 0)
    node->second.is_running = true;  // Its read from before the removal goes on.
  else
    set_due(name, node->second, between(now, now + settings_.interval_ns));
}

void ReadSchedule::hurry(const std::string& name, Nanoseconds now) {
  const auto node = nodes_.find(name);
  if (node == nodes_.end() || node->second.is_running) return;
  node->second.failures = 0;
  set_due(name, node->second, std::min(node->second.due, between(now, now + hurry_ns)));
}

void ReadSchedule::remove(const std::string& name) {
  const auto node = nodes_.find(name);
  if (node == nodes_.end()) return;
  if (node->second.is_running)
    removed_.insert(name);
  else
    queue_.erase({node->second.due, name});
  nodes_.erase(node);
}

std::vector<std::string> ReadSchedule::begin(Nanoseconds now) {
  std::vector<std::string> out;
  while (!queue_.empty() && running_ < settings_.max_running && queue_.begin()->first <= now) {
    out.push_back(queue_.begin()->second);
    queue_.erase(queue_.begin());
    nodes_.at(out.back()).is_running = true;
    ++running_;
  }
  return out;
}

void ReadSchedule::ended(const std::string& name, End end, Nanoseconds now) {
  invariant(running_ > 0, "only a read that has begun can end");
  --running_;
  if (removed_.erase(name) != 0) return;
  Node& node = nodes_.at(name);
  invariant(node.is_running, "a node is read once at a time");
  node.is_running = false;
  node.failures = end == End::failed ? node.failures + 1 : 0;
  if (end == End::partial) return set_due(name, node, between(now, now + second_ns));
  const Nanoseconds wait = std::min(settings_.interval_ns << std::min(node.failures, 20U),
                                    std::max(settings_.interval_ns, settings_.max_interval_ns));
  set_due(name, node,
          end == End::complete ? now + between(wait * 9 / 10, wait) : now + between(wait / 2, wait));
}

ReadSchedule::Nanoseconds ReadSchedule::wake_at(Nanoseconds now) const {
  const Nanoseconds last = now + settings_.interval_ns;
  if (queue_.empty() || running_ >= settings_.max_running) return last;
  return std::min(std::max(queue_.begin()->first, now), last);
}

}  // namespace carve::controller
