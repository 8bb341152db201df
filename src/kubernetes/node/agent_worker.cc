#include "kubernetes/node/agent_worker.h"

#include <utility>

#include "os/clock.h"

namespace carve::kubernetes::node {

void AgentWorker::run(Job job) {
  worker_.run([this, job = std::move(job)] { job(agent_); });
  worker_.wake();
}

int64_t AgentWorker::turn() {
  auto report = agent_.report();
  if (report)
    reported_(std::move(*report));
  else
    reported_(tl::unexpected(report.error().detail));
  return os::second;
}

}  // namespace carve::kubernetes::node
