#include "kubernetes/coordinator/webhook_certificates.h"

#include <gmock/gmock.h>

#include "kubernetes/api/testing/simulated_api_client.h"
#include "wire/api/json_value.h"

namespace carve::kubernetes::coordinator {
namespace {

using api::Json;
using kubernetes::second_ns;
using ::testing::HasSubstr;

constexpr const char* secrets = "/api/v1/secrets";

struct CertificateScenario {
  kubernetes::VirtualTime time;
  kubernetes::ApiServerFake server;
  kubernetes::SimulatedApiClient client{time, server, 1};
  bool is_active = true;
  int64_t begin_s = 1'800'000'000;
  std::vector<std::string> served;
  std::optional<WebhookCertificates> certificates;

  CertificateScenario() {
    server.put(secrets, {{"metadata", {{"name", "carve-tls"}, {"namespace", "carve-system"}}}});
  }
  void begin() {
    certificates.emplace(
        client, "carve-system", "localhost,127.0.0.1",
        WebhookCertificates::Hooks{
            .is_active = [this] { return is_active; },
            .utc_s = [this] { return begin_s + time.now() / second_ns; },
            .serve = [this](const CertifiedKey& key) { served.push_back(key.certificate_pem); }});
  }
  CertificateSet stored() const {
    const auto read = read_secret(server.find(secrets, "carve-system", "carve-tls")->dump());
    EXPECT_TRUE(read);
    return read->set;
  }
};

TEST(WebhookCertificates, the_active_replica_creates_them_once) {
  CertificateScenario s;
  s.begin();
  s.time.run_for(10 * second_ns);
  ASSERT_EQ(s.served.size(), 1u);
  EXPECT_EQ(s.certificates->problem(), "");
  EXPECT_EQ(s.stored().serving.certificate_pem, s.served[0]);
  const uint64_t version = s.server.version();
  s.time.run_for(600 * second_ns);
  EXPECT_EQ(s.server.version(), version) << "nothing is written without a change";
}

TEST(WebhookCertificates, another_replica_waits_and_loads_them) {
  CertificateScenario s;
  s.is_active = false;
  s.begin();
  s.time.run_for(10 * second_ns);
  EXPECT_TRUE(s.served.empty());
  EXPECT_THAT(s.certificates->problem(), HasSubstr("the active replica creates it"));
  kubernetes::SimulatedApiClient other(s.time, s.server, 2);
  const WebhookCertificates active(other, "carve-system", "localhost,127.0.0.1",
                                   {.is_active = [] { return true; },
                                    .utc_s = [&] { return s.begin_s; },
                                    .serve = [](const CertifiedKey&) {}});
  s.time.run_for(10 * second_ns);
  EXPECT_EQ(s.served.size(), 1u);
  EXPECT_EQ(s.certificates->problem(), "");
}

TEST(WebhookCertificates, a_renewed_certificate_is_served) {
  CertificateScenario s;
  s.begin();
  s.time.run_for(10 * second_ns);
  s.begin_s += 61 * day_s;
  s.time.run_for(120 * second_ns);
  ASSERT_EQ(s.served.size(), 2u);
  EXPECT_EQ(s.stored().serving.certificate_pem, s.served[1]);
}

TEST(WebhookCertificates, a_conflict_keeps_the_certificate_of_another_replica) {
  CertificateScenario s;
  s.begin();
  s.time.run_for(10 * second_ns);
  StoredCertificates old = *read_secret(s.server.find(secrets, "carve-system", "carve-tls")->dump());
  EXPECT_NE(old.resource_version, "");
  const Json patch = Json::parse(secret_patch(old));
  EXPECT_EQ(patch["metadata"]["resourceVersion"], old.resource_version) << "a stale version is rejected";
}

TEST(WebhookCertificates, a_missing_secret_is_reported) {
  CertificateScenario s;
  s.server.remove(secrets, "carve-system", "carve-tls");
  s.begin();
  s.time.run_for(10 * second_ns);
  EXPECT_THAT(s.certificates->problem(), HasSubstr("Secret carve-tls: "));
}

TEST(WebhookCertificates, the_bundle_is_written_where_it_differs) {
  const std::string configuration =
      R"({"webhooks":[{"name":"pods.carve.dev","clientConfig":{"caBundle":"QQ=="}},{"name":"b","clientConfig":{}}]})";
  const auto patch = bundle_patch(configuration, "A");
  ASSERT_TRUE(patch) << patch.error();
  EXPECT_EQ(Json::parse(*patch),
            (Json{{"webhooks", {{{"name", "b"}, {"clientConfig", {{"caBundle", "QQ=="}}}}}}}));
  EXPECT_EQ(bundle_patch(R"({"webhooks":[]})", "A").value(), "");
  for (const char* text : {"", "[]", "{"}) EXPECT_FALSE(bundle_patch(text, "A")) << text;
}

TEST(WebhookCertificates, a_secret_with_invalid_texts_is_an_empty_set) {
  for (const char* text :
       {R"({"data":{"ca.crt":"!!","tls.key":5}})", R"({"data":[]})", "{}", R"({"metadata":5})"}) {
    const auto read = read_secret(text);
    ASSERT_TRUE(read) << text;
    EXPECT_EQ(read->set, CertificateSet{}) << text;
  }
  EXPECT_FALSE(read_secret("[]"));
}

}  // namespace
}  // namespace carve::kubernetes::coordinator
