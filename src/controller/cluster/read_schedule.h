// When the usage records of each node of a cluster are read: every node once per interval, at most a number of
// nodes at a time. The times are spread at random, so that thousands of nodes are not read in the same second,
// and a node that fails is read less often. Pure: time and the seed are arguments.
#pragma once

#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kubernetes/api/api_client.h"

namespace carve::controller {

struct ReadScheduleSettings {
  kubernetes::Nanoseconds interval_ns = 60 * kubernetes::second_ns;
  kubernetes::Nanoseconds max_interval_ns =
      600 * kubernetes::second_ns;  // The interval of a node that fails never exceeds it.
  size_t max_running = 50;
};

class ReadSchedule {
 public:
  using Nanoseconds = kubernetes::Nanoseconds;
  ReadSchedule(ReadScheduleSettings settings, uint64_t seed) : settings_(settings), random_(seed) {}

  // Adds a node, to be read within one interval. Has no effect on a known node.
  void add(const std::string& node, Nanoseconds now);
  // Reads a node within 5 s, because its address or key has changed. Has no effect while it is being read.
  void hurry(const std::string& node, Nanoseconds now);
  void remove(const std::string& node);

  // Returns the nodes to read now, and counts them as running until ended().
  std::vector<std::string> begin(Nanoseconds now);
  enum class End : uint8_t {
    complete,
    partial,  // There are more records; the node is read again within a second.
    failed,
  };
  void ended(const std::string& node, End, Nanoseconds now);

  // Returns when begin() would return a node; no later than in one interval.
  Nanoseconds wake_at(Nanoseconds now) const;
  size_t running() const { return running_; }

 private:
  struct Node {
    Nanoseconds due = 0;  // Meaningless while it is running.
    bool is_running = false;
    unsigned failures = 0;  // In a row.
  };
  // Returns a random time from `from` to `to`.
  Nanoseconds between(Nanoseconds from, Nanoseconds to);
  void set_due(const std::string& name, Node&, Nanoseconds due);

  const ReadScheduleSettings settings_;
  std::mt19937_64 random_;
  std::map<std::string, Node> nodes_;
  std::set<std::pair<Nanoseconds, std::string>> queue_;  // The nodes that are not running, by due time.
  size_t running_ = 0;                                   // Includes removed nodes whose read has not ended.
  std::set<std::string> removed_;
};

}  // namespace carve::controller
