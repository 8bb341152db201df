// The thread of a controller whose objects are custom resources (carve-controller --kubernetes): the client of the
// API server, the Lease, and the reconciler run in a loop of their own, so that a slow API server delays no
// response of the API.
#pragma once

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "controller/kubernetes/api_caller.h"
#include "controller/kubernetes/cluster_reconciler.h"
#include "controller/kubernetes/cluster_registry.h"
#include "kubernetes/api/client/connection.h"
#include "kubernetes/api/lease_holder.h"
#include "os/loop.h"

namespace carve::controller {

class ClusterThread {
 public:
  // Starts the thread, and waits until all objects have been read. Fails as unavailable after max_start_ns.
  static Outcome<std::unique_ptr<ClusterThread>> begin(kubernetes::Connection);
  ~ClusterThread();  // Gives up the Lease; pods keep running.
  ClusterThread(const ClusterThread&) = delete;
  ClusterThread& operator=(const ClusterThread&) = delete;

  static constexpr int64_t max_start_ns = 60 * kubernetes::second_ns;

  ClusterRegistry& objects() { return objects_; }
  ApiCaller& api() { return caller_; }
  // Returns the revisions of the object with this uid, oldest first.
  std::vector<ClusterRevision> revisions(const std::string& uid) const { return reconciler_->revisions(uid); }

 private:
  explicit ClusterThread(kubernetes::Connection);
  void start(const kubernetes::Connection&);  // In the thread.
  Outcome<void> wait_for_objects();
  void end();

  os::Loop loop_;
  const std::unique_ptr<kubernetes::ApiClient> client_;
  LoopApiCaller caller_;
  ClusterRegistry objects_;
  std::unique_ptr<kubernetes::LeaseHolder> lease_;
  std::unique_ptr<ClusterReconciler> reconciler_;
  std::thread thread_;
};

}  // namespace carve::controller
