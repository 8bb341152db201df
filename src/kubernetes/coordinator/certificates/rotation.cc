#include "kubernetes/coordinator/certificates/rotation.h"

namespace carve::kubernetes::coordinator {
namespace {

bool ends_within(const CertificateFacts& facts, int64_t days, int64_t now_s) {
  return now_s >= facts.not_after_s - days * day_s;
}

bool is_older_than_a_step(const CertificateFacts& facts, int64_t now_s) {
  return now_s >= facts.not_before_s + step_s;
}

std::vector<std::string> divided(const std::string& names) {
  std::vector<std::string> out(1);
  for (const char c : names) {
    if (c == ',')
      out.emplace_back();
    else
      out.back() += c;
  }
  return out;
}

}  // namespace

RotationStep next_step(const CertificateSet& set, const std::string& names, int64_t now_s) {
  if (set.cas.empty() || !is_key_of(set.ca_key, set.cas.front())) return RotationStep::begin;
  const auto ca = facts_of(set.cas.front());
  if (!ca || now_s >= ca->not_after_s || now_s < ca->not_before_s) return RotationStep::begin;
  const auto serving = facts_of(set.serving.certificate_pem);
  const bool is_usable =
      serving && now_s < serving->not_after_s && is_key_of(set.serving.key_pem, set.serving.certificate_pem);
  bool is_trusted = false;
  for (const std::string& each : set.cas)
    is_trusted = is_trusted || is_signed_by(set.serving.certificate_pem, each);
  if (!is_usable || !is_trusted || set.names != names) return RotationStep::make_serving;

  const bool is_new_ca_known = set.cas.size() == 1 || is_older_than_a_step(*ca, now_s);
  const bool is_by_newest = is_signed_by(set.serving.certificate_pem, set.cas.front());
  if (is_new_ca_known && (!is_by_newest || ends_within(*serving, renew_serving_days, now_s)))
    return RotationStep::make_serving;
  if (set.cas.size() > 1)
    return is_by_newest && is_older_than_a_step(*serving, now_s) ? RotationStep::remove_old_cas
                                                                 : RotationStep::none;
  return ends_within(*ca, renew_ca_days, now_s) ? RotationStep::add_ca : RotationStep::none;
}

Outcome<CertificateSet> after_step(RotationStep step, CertificateSet set, const std::string& names,
                                   int64_t now_s) {
  if (step == RotationStep::none) return set;
  if (step == RotationStep::remove_old_cas) {
    set.cas.resize(1);
    return set;
  }
  if (step == RotationStep::begin || step == RotationStep::add_ca) {
    auto ca = make_ca(now_s, ca_days);
    if (!ca) return tl::unexpected(ca.error());
    if (step == RotationStep::begin) set.cas.clear();
    set.cas.insert(set.cas.begin(), std::move(ca->certificate_pem));
    set.ca_key = std::move(ca->key_pem);
    if (step == RotationStep::add_ca) return set;
  }
  auto serving = make_serving({set.cas.front(), set.ca_key}, divided(names), now_s, serving_days);
  if (!serving) return tl::unexpected(serving.error());
  set.serving = std::move(*serving);
  set.names = names;
  return set;
}

}  // namespace carve::kubernetes::coordinator
