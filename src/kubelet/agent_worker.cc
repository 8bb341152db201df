#include "kubelet/agent_worker.h"

#include "os/clock.h"

namespace carve::kubelet {

void AgentWorker::run(Job job) {
  {
    const os::MutexLock lock(mutex_);
    jobs_.push_back(std::move(job));
  }
  worker_.wake();
}

int64_t AgentWorker::turn() {
  std::vector<Job> jobs;
  {
    const os::MutexLock lock(mutex_);
    jobs.swap(jobs_);
  }
  for (const Job& job : jobs) job(agent_);
  auto report = agent_.report();
  if (report)
    reported_(std::move(*report));
  else
    reported_(tl::unexpected(report.error().detail));
  return os::second;
}

}  // namespace carve::kubelet
