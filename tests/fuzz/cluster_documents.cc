// Any bytes as an object of the cluster that the coordinator or kubectl-carve reads: settings and their
// review, quotas, the Secret of the certificates, a webhook configuration, lists of nodes and pods, and the
// doctor's answers. Each is read or refused with a sentence; what is read can be written again.
#include <cstdint>
#include <cstdlib>

#include "cluster/webhook/namespace_rules.h"
#include "cluster/webhook/settings_review.h"
#include "cluster/webhook_certificates.h"
#include "kubectl/doctor.h"
#include "kubectl/fleet_snapshot.h"
#include "kubectl/views.h"
#include "wire/api/json_value.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

void read_settings(std::string_view text) {
  using namespace carve;
  const auto settings = cluster::read_settings_object(text);
  if (!settings) return require(!settings.error().empty() && !settings.error().front().sentence.empty());
  require(!settings->schedulers.empty());
  const auto pending = cluster::pending_unit(*settings, {{1u << 30, {"a/p"}}});
  require(!pending || api::parse(cluster::pending_text(*pending)).has_value());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace carve;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  read_settings(text);
  const auto review = cluster::review_settings(text, {{1u << 30, {"a/p"}}});
  require(review ? api::parse(*review).has_value() : !review.error().empty());
  const auto keys = cluster::read_quota_keys(text);
  require(keys || !keys.error().empty());
  const auto secret = cluster::read_secret(text);
  require(secret ? api::parse(cluster::secret_patch(*secret)).has_value() : !secret.error().empty());
  const auto patch = cluster::bundle_patch(text, "bundle");
  require(patch ? patch->empty() || api::parse(*patch).has_value() : !patch.error().empty());
  const auto view = kubectl::read_view(text, text);
  require(view || !view.error().empty());
  if (view) {
    kubectl::table_text(kubectl::table_of(kubectl::node_rows(*view, {}), kubectl::Form::wide));
    kubectl::table_text(kubectl::table_of(kubectl::device_rows(*view), kubectl::Form::wide));
    kubectl::table_text(kubectl::table_of(kubectl::slice_rows(*view, ""), kubectl::Form::wide));
    std::vector<std::string> left_out;
    require(api::parse(api::write(kubectl::snapshot_of(*view, left_out))).has_value());
  }
  const kubectl::Answer answer = std::string(text);
  const auto report = kubectl::examine({answer, answer, answer, answer, answer, answer, answer}, nullptr);
  require(!kubectl::table_text(kubectl::table_of(report)).empty());
  return 0;
}
