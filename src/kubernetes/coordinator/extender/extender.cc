#include "kubernetes/coordinator/extender/extender.h"
#include "kubernetes/coordinator/cache/decisions.h"
#include "kubernetes/coordinator/cache/explanation.h"
#include "kubernetes/coordinator/cache/preemption.h"

#include <algorithm>
#include <memory>

namespace carve::kubernetes::coordinator {
namespace {

http::Response plain(unsigned status, std::string text) {
  return {.status = status, .type = "text/plain", .content = std::move(text) + "\n"};
}

http::Response json(std::string text) { return {.content = std::move(text)}; }

// A bind that waits for the API server. It is owned by its connection, because a closed connection takes no
// response.
struct WaitingBind {
  http::LaterAnswer* later = nullptr;
};

}  // namespace

http::Response Extender::handle(const http::Request& request) {
  const std::pair<std::string_view, http::Response (Extender::*)(const std::string&)> verbs[] = {
      {"/filter", &Extender::filter},
      {"/prioritize", &Extender::prioritize},
      {"/preempt", &Extender::preempt},
      {"/bind", &Extender::bind}};
  for (const auto& [path, answer] : verbs) {
    if (request.path != path) continue;
    if (request.method != "POST") return plain(405, "use POST");
    const kubernetes::Nanoseconds begin = hooks_.now();
    http::Response response = (this->*answer)(request.body);
    if (!std::holds_alternative<http::LaterContent>(response.content))
      hooks_.answered(path.substr(1), hooks_.now() - begin, path == "/bind" ? "refused" : "");
    return response;
  }
  return plain(404, "unknown path; use /filter, /prioritize, /preempt or /bind");
}

http::Response Extender::filter(const std::string& body) {
  const auto question = read_nodes_question(body);
  if (!question) return json(filter_error(question.error()));
  if (const std::string why = hooks_.not_ready(); !why.empty()) return json(filter_error(why));
  if (const auto known = cache_.know_pod(question->pod); !known) return json(filter_error(known.error()));
  const std::string& uid = question->pod.uid;
  const auto refusals = filter_nodes(cache_, uid, question->nodes);
  std::vector<size_t> preemptible;
  if (std::ranges::any_of(refusals, &std::string_view::empty)) {
    hooks_.fits(uid);
  } else {
    hooks_.waits(question->pod, question->nodes,
                 [&] { return explain_waiting(cache_, uid, question->nodes); });
    if (hooks_.preempts()) preemptible = preemptible_nodes(cache_, uid, question->nodes);
  }
  return json(filter_answer(question->nodes, refusals, preemptible));
}

http::Response Extender::prioritize(const std::string& body) {
  const auto question = read_nodes_question(body);
  if (!question) return plain(400, question.error());
  return json(
      prioritize_answer(question->nodes, prioritize_nodes(cache_, question->pod.uid, question->nodes)));
}

// The scheduler has chosen victims by the node's totals. Without this response it would remove too few pods,
// or pods whose devices do not make room. Its violations of disruption budgets are passed through.
http::Response Extender::preempt(const std::string& body) {
  auto question = read_preempt_question(body);
  if (!question) return plain(400, question.error());
  if (const std::string why = hooks_.not_ready(); !why.empty()) return plain(503, why);
  if (const auto known = cache_.know_pod(question->pod); !known) return plain(400, known.error());
  std::map<std::string, Victims> left;
  for (const auto& [node, sent] : question->nodes)
    if (auto victims = complete_victims(cache_, question->pod.uid, node, sent.uids))
      left[node] = {.uids = std::move(*victims), .violations = sent.violations};
  return json(preempt_answer(left));
}

http::Response Extender::bind(const std::string& body) {
  const auto question = read_bind_question(body);
  if (!question) return json(bind_answer(question.error()));
  if (const std::string why = hooks_.not_ready(); !why.empty()) return json(bind_answer(why));
  if (const std::string why = hooks_.fence(); !why.empty()) return json(bind_answer(why));
  const auto slices = reserve_devices(cache_, question->uid, question->node);
  if (!slices) return json(bind_answer(slices.error()));
  auto waiting = std::make_shared<WaitingBind>();
  binder_.bind(*question, *slices, [this, waiting, begin = hooks_.now()](const std::string& error) {
    hooks_.answered("bind", hooks_.now() - begin, error);
    if (waiting->later != nullptr) std::exchange(waiting->later, nullptr)->answer(json(bind_answer(error)));
  });
  return {.content = http::LaterContent{[waiting](http::LaterAnswer& later) {
            waiting->later = &later;
            // If the connection closes, only the response is dropped; the write continues.
            return std::shared_ptr<void>(waiting.get(), [waiting](void*) { waiting->later = nullptr; });
          }}};
}

}  // namespace carve::kubernetes::coordinator
