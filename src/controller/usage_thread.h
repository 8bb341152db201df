// The thread that reads the usage records of a Kubernetes cluster's nodes (controller/cluster/cluster_usage.h)
// and publishes used-up budgets (controller/cluster/budget_publisher.h). It has its own loop, because parsing
// thousands of responses would delay the API.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include "controller/billing_thread.h"
#include "controller/cluster/cluster_usage.h"
#include "controller/objects/event_inbox.h"
#include "kubernetes/api/client/connection.h"
#include "os/loop.h"
#include "os/mutex.h"

namespace carve::controller {

class UsageThread {
 public:
  struct Settings {
    kubernetes::Connection connection;
    UsageAccount account;
    kubernetes::Nanoseconds interval_ns = 60 * kubernetes::second_ns;
    std::set<std::string> local_nodes;  // Nodes of the command line.
  };
  UsageThread(Settings, BillingThread&, const ObjectRegistry&, EventInbox&);
  ~UsageThread();  // Drops the reads in progress.
  UsageThread(const UsageThread&) = delete;
  UsageThread& operator=(const UsageThread&) = delete;

  // Returns the figures of the last second.
  ClusterUsage::Figures figures() const EXCLUDES(mutex_);

 private:
  void run(const Settings&, BillingThread&, const ObjectRegistry&, EventInbox&) EXCLUDES(mutex_);

  os::Loop loop_;
  mutable os::Mutex mutex_;
  ClusterUsage::Figures figures_ GUARDED_BY(mutex_);
  std::thread thread_;  // Declared last because it uses the other members.
};

}  // namespace carve::controller
