#include "kubernetes/coordinator/watched_budgets.h"

#include "os/log.h"

namespace carve::kubernetes::coordinator {

WatchedBudgets::WatchedBudgets(kubernetes::ApiClient& client, const std::string& name_space, uint64_t seed)
    : watch_(client,
             {.path = fmt::format("/api/v1/namespaces/{}/configmaps", name_space),
              .label_selector = "",
              .field_selector = fmt::format("metadata.name={}", kubernetes::budgets_name),
              .keys = {kubernetes::budgets_annotation}},
             {.replaced =
                  [this](const kubernetes::ObjectsByUid& all) {
                    if (all.empty()) used_ = {};
                    for (const auto& [uid, object] : all) read(object);
                  },
              .changed = [this](const kubernetes::ObjectMeta& object) { read(object); },
              .removed = [this](const kubernetes::ObjectMeta&) { used_ = {}; }},
             seed) {}

void WatchedBudgets::read(const kubernetes::ObjectMeta& object) {
  const auto text = object.annotations.find(kubernetes::budgets_annotation);
  if (text == object.annotations.end()) {
    used_ = {};
    return;
  }
  auto used = kubernetes::read_used_budgets(text->second);
  if (!used)
    os::log::warning("ConfigMap {}: {}; no budget is enforced", kubernetes::budgets_name, used.error());
  used_ = used ? std::move(*used) : kubernetes::UsedBudgets{};
}

}  // namespace carve::kubernetes::coordinator
