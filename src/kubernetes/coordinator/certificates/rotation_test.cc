#include "kubernetes/coordinator/certificates/rotation.h"

#include <gmock/gmock.h>

namespace carve::kubernetes::coordinator {
namespace {

constexpr int64_t start_s = 1'800'000'000;
const std::string names = "carve-coordinator.carve-system.svc,127.0.0.1";

CertificateSet begun(int64_t now_s = start_s) { return *after_step(RotationStep::begin, {}, names, now_s); }

TEST(Rotation, fills_an_empty_secret) {
  EXPECT_EQ(next_step({}, names, start_s), RotationStep::begin);
  const CertificateSet set = begun();
  ASSERT_EQ(set.cas.size(), 1u);
  EXPECT_TRUE(is_signed_by(set.serving.certificate_pem, set.cas[0]));
  EXPECT_TRUE(is_key_of(set.ca_key, set.cas[0]));
  EXPECT_TRUE(is_key_of(set.serving.key_pem, set.serving.certificate_pem));
  EXPECT_EQ(next_step(set, names, start_s), RotationStep::none);
  EXPECT_EQ(facts_of(set.cas[0])->not_after_s, start_s + ca_days * day_s);
  EXPECT_EQ(facts_of(set.serving.certificate_pem)->not_after_s, start_s + serving_days * day_s);
}

TEST(Rotation, renews_a_serving_certificate_after_60_days) {
  const CertificateSet set = begun();
  EXPECT_EQ(next_step(set, names, start_s + 60 * day_s - 1), RotationStep::none);
  EXPECT_EQ(next_step(set, names, start_s + 60 * day_s), RotationStep::make_serving);
  const auto renewed = after_step(RotationStep::make_serving, set, names, start_s + 60 * day_s);
  EXPECT_EQ(renewed->cas, set.cas);
  EXPECT_EQ(next_step(*renewed, names, start_s + 60 * day_s), RotationStep::none);
}

TEST(Rotation, issues_a_new_certificate_if_the_names_change) {
  EXPECT_EQ(next_step(begun(), names + ",10.0.0.1", start_s), RotationStep::make_serving);
}

TEST(Rotation, replaces_unusable_certificates) {
  CertificateSet set = begun();
  const CertificateSet other = begun();
  set.serving = other.serving;
  EXPECT_EQ(next_step(set, names, start_s), RotationStep::make_serving) << "signed by another CA";
  set = begun();
  set.serving.key_pem = other.serving.key_pem;
  EXPECT_EQ(next_step(set, names, start_s), RotationStep::make_serving);
  set = begun();
  set.ca_key = "text";
  EXPECT_EQ(next_step(set, names, start_s), RotationStep::begin);
  set = begun();
  set.cas[0] = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
  EXPECT_EQ(next_step(set, names, start_s), RotationStep::begin);
  EXPECT_EQ(next_step(begun(), names, start_s + ca_days * day_s), RotationStep::begin) << "all have expired";
}

// Simulates two and a half years in steps of a day. At each moment the certificate is valid, and a server
// that loaded the bundle a day ago trusts it.
TEST(Rotation, yesterdays_bundle_trusts_todays_certificate) {
  CertificateSet set = begun();
  std::vector<std::vector<std::string>> bundles(1, set.cas);
  size_t changes = 0;
  for (int64_t now = start_s; now < start_s + 910 * day_s; now += day_s) {
    const RotationStep step = next_step(set, names, now);
    ASSERT_NE(step, RotationStep::begin);
    if (step != RotationStep::none) {
      set = *after_step(step, set, names, now);
      ++changes;
      bool is_trusted = false;
      for (const std::string& ca : bundles.front())
        is_trusted = is_trusted || is_signed_by(set.serving.certificate_pem, ca);
      ASSERT_TRUE(is_trusted) << (now - start_s) / day_s;
    }
    bundles.erase(bundles.begin());
    bundles.push_back(set.cas);
    if (step == RotationStep::none) continue;
    const auto facts = facts_of(set.serving.certificate_pem);
    ASSERT_GT(facts->not_after_s, now + 20 * day_s);
    ASSERT_LE(set.cas.size(), 2u);
  }
  EXPECT_GT(changes, 14u);
  EXPECT_LT(changes, 25u);
}

TEST(Rotation, splits_a_bundle_into_certificates) {
  const CertificateSet a = begun(), b = begun();
  const auto parts = certificates_in(a.cas[0] + "text\n" + b.cas[0] + "-----BEGIN CERTIFICATE-----\nAA");
  EXPECT_THAT(parts, ::testing::ElementsAre(a.cas[0], b.cas[0]));
  EXPECT_TRUE(certificates_in("").empty());
  EXPECT_FALSE(facts_of("text"));
}

}  // namespace
}  // namespace carve::kubernetes::coordinator
