// The scheduler extender's four verbs over HTTP: filter, prioritize, preempt and bind, each a POST. The first
// three are answered from the cache, and bind after the API server has responded.
#pragma once

#include <functional>
#include <string>

#include "http/message.h"
#include "kubernetes/coordinator/cache/cache.h"
#include "kubernetes/coordinator/extender/binder.h"

namespace carve::kubernetes::coordinator {

// Returns whether the scheduler's dry run of a preemption calls an extender for nodes that only the extender
// refuses. Before kubernetes #135486 it does not: it finds that no pod has to be removed, and fails. The
// change was merged after 1.37 and is expected in 1.38, which was not tested.
constexpr bool preempts_for_extenders(const kubernetes::ServerVersion& version) {
  return std::pair(version.major, version.minor) >= std::pair(1u, 38u);
}

inline constexpr size_t max_question_bytes = 8 << 20;  // 100,000 names and a pod of etcd's maximum size.

class Extender {
 public:
  struct Hooks {
    // Returns why no binding may be written now. Empty if one may. Only one of two coordinators may write.
    std::function<std::string()> fence;
    // Returns whether the scheduler preempts pods for an extender: preempts_for_extenders().
    std::function<bool()> preempts;
    // Returns why the cache is not complete yet. Empty if it is.
    std::function<std::string()> not_ready;
    // Called for each response with the verb, the duration, and the error of a binding (empty on success).
    std::function<kubernetes::Nanoseconds()> now;
    std::function<void(std::string_view verb, kubernetes::Nanoseconds took, const std::string& error)>
        answered;
    // Called when a node can serve the pod.
    std::function<void(const std::string& uid)> fits;
    // Called when none of the requested nodes can serve the pod. `why` is valid during the call.
    std::function<void(const kubernetes::ObjectMeta& pod, std::span<const std::string_view> nodes,
                       const std::function<std::string()>& why)>
        waits;
  };
  Extender(Cache& cache, Binder& binder, Hooks hooks)
      : cache_(cache), binder_(binder), hooks_(std::move(hooks)) {}

  http::Response handle(const http::Request&);

 private:
  http::Response filter(const std::string& body);
  http::Response prioritize(const std::string& body);
  http::Response preempt(const std::string& body);
  http::Response bind(const std::string& body);

  Cache& cache_;
  Binder& binder_;
  const Hooks hooks_;
};

}  // namespace carve::kubernetes::coordinator
