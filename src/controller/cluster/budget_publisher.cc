#include "controller/cluster/budget_publisher.h"

#include <algorithm>

#include "os/log.h"
#include "wire/api/json_value.h"

namespace carve::controller {
namespace {

constexpr size_t max_bytes = kubernetes::max_annotation_bytes - 1024;

}  // namespace

kubernetes::UsedBudgets used_budgets(const std::vector<BudgetState>& budgets, const std::string& until,
                                     size_t& left_out) {
  kubernetes::UsedBudgets out{.until = until, .accounts = {}};
  size_t bytes = 0;
  left_out = 0;
  for (const BudgetState& budget : budgets) {
    if (budget.spec.then != "refuse" || !budget.status.holds || budget.status.to != until) continue;
    if (out.accounts.contains(budget.spec.account)) continue;
    // Two quoted texts, a colon and a comma; a character may be escaped as six.
    const size_t needed = 6 + api::quoted(budget.spec.account).size() + api::quoted(budget.name).size();
    if (bytes + needed > max_bytes) {
      ++left_out;
      continue;
    }
    bytes += needed;
    out.accounts.emplace(budget.spec.account, budget.name);
  }
  return out;
}

BudgetPublisher::BudgetPublisher(kubernetes::ApiClient& client, std::string name_space,
                                 std::function<kubernetes::UsedBudgets()> wanted)
    : client_(client),
      target_(fmt::format("/api/v1/namespaces/{}/configmaps/{}", name_space, kubernetes::budgets_name)),
      wanted_(std::move(wanted)) {
  tick();
}

void BudgetPublisher::tick() {
  timer_ = client_.after(interval_ns, [this] { tick(); });
  if (call_) return;
  const std::string text = api::write(wanted_());
  if (text == written_) return;
  written_ = text;
  call_ = client_.send(
      {.method = "PATCH",
       .target = target_,
       .body = api::Json{{"metadata", {{"annotations", {{kubernetes::budgets_annotation, text}}}}}}.dump(),
       .content_type = kubernetes::merge_patch_type,
       .deadline_ns = 10 * kubernetes::second_ns},
      [this](const kubernetes::ApiAnswer& answer) {
        const auto ended = std::move(call_);
        if (!answer.is_success()) written_.clear();
        if (!answer.is_success() && problem_ != answer.problem)
          os::log::warning("ConfigMap {}: the used-up budgets cannot be published: {}",
                           kubernetes::budgets_name, answer.problem);
        problem_ = answer.problem;
      });
}

}  // namespace carve::controller
