#include "kubernetes/coordinator/retry_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "kubernetes/coordinator/cache/decisions.h"
#include "os/log.h"

namespace carve::kubernetes::coordinator {
namespace {

constexpr kubernetes::Nanoseconds turn_interval_ns = kubernetes::second_ns;

}  // namespace

RetryWriter::RetryWriter(kubernetes::ApiClient& client, Cache& cache, std::function<std::string()> fence)
    : client_(client), cache_(cache), fence_(std::move(fence)) {
  turn();
}

void RetryWriter::refused(const kubernetes::ObjectMeta& pod, std::span<const std::string_view> nodes) {
  if (pod.name_space.empty()) return;  // The request did not contain the pod's name.
  Waiting& waiting = waiting_[pod.uid];
  waiting.pod = {.name_space = pod.name_space, .name = pod.name, .uid = pod.uid};
  waiting.check_at = client_.now() + waiting.interval;
  waiting.asked += nodes.size();
  waiting.nodes.reset();
  if (nodes.size() >= min_sampled_nodes) return;
  std::vector<std::string> names(nodes.begin(), nodes.end());
  std::ranges::sort(names);
  if (!last_nodes_ || *last_nodes_ != names)
    last_nodes_ = std::make_shared<const std::vector<std::string>>(std::move(names));
  waiting.nodes = last_nodes_;
}

bool RetryWriter::fits(const Waiting& waiting) {
  if (!waiting.nodes) return fits_somewhere(cache_, waiting.pod.uid);
  const std::vector<std::string_view> names(waiting.nodes->begin(), waiting.nodes->end());
  return fits_somewhere(cache_, waiting.pod.uid, names);
}

void RetryWriter::turn() {
  timer_ = client_.after(turn_interval_ns, [this] { turn(); });
  if (waiting_.empty() || !fence_().empty()) return;
  std::vector<Waiting*> due;
  for (auto& [uid, waiting] : waiting_)
    if (waiting.check_at != 0 && waiting.check_at <= client_.now()) due.push_back(&waiting);
  std::ranges::sort(due, {}, &Waiting::check_at);
  due.resize(std::min(due.size(), max_retry_checks));
  for (Waiting* const waiting : due) {
    waiting->check_at = 0;
    if (fits(*waiting)) write(*waiting);
  }
}

// The coordinator may only update the status of pods, but such a write can also change labels. The uid makes
// the write fail if another pod now has the name.
void RetryWriter::write(Waiting& waiting) {
  if (waiting.nodes || waiting.asked >= cache_.nodes().size()) {
    waiting.interval = std::min(2 * waiting.interval, max_retry_interval_ns);
    waiting.asked = 0;
  }
  os::log::info("pod {}/{} fits now, but the scheduler has not retried it; writing label {}",
                waiting.pod.name_space, waiting.pod.name, retry_label);
  waiting.call = client_.send(
      {.method = "PATCH",
       .target =
           fmt::format("/api/v1/namespaces/{}/pods/{}/status", waiting.pod.name_space, waiting.pod.name),
       .body = fmt::format(R"({{"metadata":{{"uid":"{}","labels":{{"{}":"{}"}}}}}})", waiting.pod.uid,
                           retry_label, ++waiting.writes),
       .content_type = kubernetes::merge_patch_type,
       .accept = kubernetes::metadata_object},
      [this, uid = waiting.pod.uid](const kubernetes::ApiAnswer& answer) {
        if (answer.status == 404 || answer.status == 409) return forget(uid);
        if (answer.is_success()) return;
        os::log::warning("cannot write label {}: {}", retry_label, answer.problem);
        if (const auto found = waiting_.find(uid); found != waiting_.end() && found->second.check_at == 0)
          found->second.check_at = client_.now() + found->second.interval;
      });
}

}  // namespace carve::kubernetes::coordinator
