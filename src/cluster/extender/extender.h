// The scheduler extender's four verbs over HTTP: filter, prioritize, preempt and bind, each a POST of its
// question. Questions are answered from the books; a binding is answered when the API server has it.
#pragma once

#include <functional>
#include <string>

#include "cluster/books/books.h"
#include "cluster/extender/binder.h"
#include "http/message.h"

namespace carve::cluster {

// Returns whether the scheduler asks an extender which pods it would remove from a node that the extender
// alone refuses. Before kubernetes #135486 its dry run asks no extender, finds that no pod has to leave, and
// ends in an error. The change was merged after 1.37; that 1.38 has it is believed, not measured.
constexpr bool preempts_for_extenders(const kube::ServerVersion& version) {
  return std::pair(version.major, version.minor) >= std::pair(1u, 38u);
}

inline constexpr size_t max_question_bytes = 8 << 20;  // 100,000 names and a pod of etcd's limit.

class Extender {
 public:
  struct Hooks {
    // Returns why no binding may be written now; empty: it may. The fence of two coordinators.
    std::function<std::string()> fence;
    // Returns whether the scheduler preempts pods for an extender: preempts_for_extenders().
    std::function<bool()> preempts;
    // Returns why the books do not answer yet; empty: they do.
    std::function<std::string()> not_ready;
    // An answer was given: which verb, how long it took, and the error of a binding; empty: it has none.
    std::function<kube::Nanoseconds()> now;
    std::function<void(std::string_view verb, kube::Nanoseconds took, const std::string& error)> answered;
    // A node can serve the pod.
    std::function<void(const std::string& uid)> fits;
    // None of the nodes of the question can serve the pod; `why` is to be asked during the call.
    std::function<void(const kube::ObjectMeta& pod, std::span<const std::string_view> nodes,
                       const std::function<std::string()>& why)>
        waits;
  };
  Extender(Books& books, Binder& binder, Hooks hooks)
      : books_(books), binder_(binder), hooks_(std::move(hooks)) {}

  http::Response handle(const http::Request&);

 private:
  http::Response filter(const std::string& body);
  http::Response prioritize(const std::string& body);
  http::Response preempt(const std::string& body);
  http::Response bind(const std::string& body);

  Books& books_;
  Binder& binder_;
  const Hooks hooks_;
};

}  // namespace carve::cluster
