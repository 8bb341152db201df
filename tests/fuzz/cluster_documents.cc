// Any bytes as an object of the cluster that the coordinator or kubectl-carve reads: settings and their
// review, quotas, the Secret with the certificates, a webhook configuration, lists of nodes and pods, and the
// doctor's answers. Each is parsed or rejected with a message, and parsed objects can be written again.
#include <cstdint>
#include <cstdlib>

#include "kubernetes/cli/doctor.h"
#include "kubernetes/cli/explain.h"
#include "kubernetes/cli/fleet_snapshot.h"
#include "kubernetes/cli/json_path.h"
#include "kubernetes/cli/views.h"
#include "kubernetes/coordinator/webhook/namespace_rules.h"
#include "kubernetes/coordinator/webhook/settings_review.h"
#include "kubernetes/coordinator/webhook_certificates.h"
#include "wire/api/json_value.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

void read_settings(std::string_view text) {
  using namespace carve;
  const auto settings = kubernetes::coordinator::read_settings_object(text);
  if (!settings) return require(!settings.error().empty() && !settings.error().front().message.empty());
  require(!settings->schedulers.empty());
  const auto pending = kubernetes::coordinator::pending_unit(*settings, {{1u << 30, {"a/p"}}});
  require(!pending || api::parse(kubernetes::coordinator::pending_text(*pending)).has_value());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace carve;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  read_settings(text);
  const auto review = kubernetes::coordinator::review_settings(text, {{1u << 30, {"a/p"}}},
                                                               kubernetes::coordinator::SchedulerBeside::own);
  require(review ? api::parse(*review).has_value() : !review.error().empty());
  const auto keys = kubernetes::coordinator::read_quota_keys(text);
  require(keys || !keys.error().empty());
  const auto secret = kubernetes::coordinator::read_secret(text);
  require(secret ? api::parse(kubernetes::coordinator::secret_patch(*secret)).has_value()
                 : !secret.error().empty());
  const auto patch = kubernetes::coordinator::bundle_patch(text, "bundle");
  require(patch ? patch->empty() || api::parse(*patch).has_value() : !patch.error().empty());
  const auto view = kubernetes::cli::read_view(text, text);
  require(view || !view.error().empty());
  if (view) {
    kubernetes::cli::table_text(
        kubernetes::cli::table_of(kubernetes::cli::node_rows(*view, {}), kubernetes::cli::Form::wide));
    kubernetes::cli::table_text(
        kubernetes::cli::table_of(kubernetes::cli::device_rows(*view), kubernetes::cli::Form::wide));
    kubernetes::cli::table_text(
        kubernetes::cli::table_of(kubernetes::cli::slice_rows(*view, ""), kubernetes::cli::Form::wide));
    std::vector<std::string> left_out;
    require(api::parse(api::write(kubernetes::cli::snapshot_of(*view, left_out))).has_value());
  }
  kubernetes::cli::newest_reason(text);
  const auto path = kubernetes::cli::json_path_text(R"({"a":[{"b":1},{"c":"d"}]})", text);
  require(path || !path.error().empty());
  const kubernetes::cli::Answer answer = std::string(text);
  const auto report =
      kubernetes::cli::examine({answer, answer, answer, answer, answer, answer, answer}, nullptr);
  require(!kubernetes::cli::table_text(kubernetes::cli::table_of(report)).empty());
  return 0;
}
