// Any bytes as a request of the scheduler are rejected or parsed, and a parsed request can be answered.
#include <cstdint>
#include <cstdlib>

#include "kubernetes/coordinator/extender/messages.h"
#include "wire/api/json_value.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace carve;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto question = kubernetes::coordinator::read_nodes_question(text)) {
    const std::vector<std::string_view> refusals(question->nodes.size());
    if (!api::parse(kubernetes::coordinator::filter_answer(question->nodes, refusals, {}))) std::abort();
    if (!api::parse(kubernetes::coordinator::prioritize_answer(question->nodes,
                                                               std::vector<uint8_t>(question->nodes.size()))))
      std::abort();
  } else if (question.error().empty()) {
    std::abort();
  }
  if (const auto question = kubernetes::coordinator::read_preempt_question(text)) {
    if (!api::parse(kubernetes::coordinator::preempt_answer(question->nodes))) std::abort();
  } else if (question.error().empty()) {
    std::abort();
  }
  if (const auto question = kubernetes::coordinator::read_bind_question(text);
      !question && question.error().empty())
    std::abort();
  return 0;
}
