#include "kubernetes/coordinator/webhook_certificates.h"

#include <openssl/evp.h>

#include "kubernetes/format/json_pointer.h"
#include "os/log.h"
#include "wire/api/json_value.h"

namespace carve::kubernetes::coordinator {
namespace {

using api::Json;

constexpr const char* strategic_merge_type = "application/strategic-merge-patch+json";
constexpr size_t max_levels = 64;
constexpr const char* configurations[] = {
    "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/carve",
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/carve"};
// Keys of the Secret: the bundle, the newest CA's key, the serving certificate, its key, and its names.
constexpr const char *ca_file = "ca.crt", *ca_key_file = "ca.key", *serving_file = "tls.crt",
                     *serving_key_file = "tls.key", *names_file = "names";

std::string encoded(const std::string& bytes) {
  std::string out(4 * ((bytes.size() + 2) / 3) + 1, '\0');  // EVP_EncodeBlock appends a NUL.
  out.resize(static_cast<size_t>(EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                                                 reinterpret_cast<const unsigned char*>(bytes.data()),
                                                 static_cast<int>(bytes.size()))));
  return out;
}

// Returns an empty string if the text is not base64.
std::string decoded(const std::string& text) {
  std::string out(text.size() / 4 * 3 + 3, '\0');
  const int size =
      EVP_DecodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                      reinterpret_cast<const unsigned char*>(text.data()), static_cast<int>(text.size()));
  if (size < 0) return "";
  const size_t padding = text.size() - std::min(text.size(), text.find_last_not_of('=') + 1);
  out.resize(static_cast<size_t>(size) - std::min<size_t>(padding, static_cast<size_t>(size)));
  return out;
}

std::string bundle_of(const CertificateSet& set) {
  std::string out;
  for (const std::string& ca : set.cas) out += ca;
  return out;
}

Result<Json, std::string> object_of(std::string_view json) {
  auto out = api::parse(json, api::Decimals::as_doubles, max_levels);
  if (!out) return tl::unexpected(out.error());
  if (!out->is_object()) return tl::unexpected(std::string("not an object"));
  return std::move(*out);
}

}  // namespace

Result<StoredCertificates, std::string> read_secret(std::string_view json) {
  const auto object = object_of(json);
  if (!object) return tl::unexpected(object.error());
  const auto data = object->find("data");
  const auto file = [&](const char* key) {
    return data != object->end() && data->is_object() && data->contains(key) && (*data)[key].is_string()
               ? decoded((*data)[key].get<std::string>())
               : "";
  };
  return StoredCertificates{.set = {.cas = certificates_in(file(ca_file)),
                                    .ca_key = file(ca_key_file),
                                    .serving = {file(serving_file), file(serving_key_file)},
                                    .names = file(names_file)},
                            .resource_version = text_at(*object, "/metadata/resourceVersion")};
}

std::string secret_patch(const StoredCertificates& stored) {
  const Json patch{{"metadata", {{"resourceVersion", stored.resource_version}}},
                   {"data",
                    {{ca_file, encoded(bundle_of(stored.set))},
                     {ca_key_file, encoded(stored.set.ca_key)},
                     {serving_file, encoded(stored.set.serving.certificate_pem)},
                     {serving_key_file, encoded(stored.set.serving.key_pem)},
                     {names_file, encoded(stored.set.names)}}}};
  return patch.dump();
}

Result<std::string, std::string> bundle_patch(std::string_view configuration_json,
                                              const std::string& bundle) {
  const auto object = object_of(configuration_json);
  if (!object) return tl::unexpected(object.error());
  const auto webhooks = object->find("webhooks");
  Json changed = Json::array();
  const std::string wanted = encoded(bundle);
  if (webhooks != object->end() && webhooks->is_array())
    for (const Json& webhook : *webhooks)
      if (webhook.is_object() && text_at(webhook, "/clientConfig/caBundle") != wanted)
        changed.push_back({{"name", text_at(webhook, "/name")}, {"clientConfig", {{"caBundle", wanted}}}});
  return changed.empty() ? std::string() : Json{{"webhooks", changed}}.dump();
}

WebhookCertificates::WebhookCertificates(kubernetes::ApiClient& client, std::string name_space,
                                         std::string names, Hooks hooks)
    : client_(client),
      path_(fmt::format("/api/v1/namespaces/{}/secrets/{}", name_space, certificate_secret)),
      names_(std::move(names)),
      hooks_(std::move(hooks)) {
  poll();
}

void WebhookCertificates::poll() {
  timer_ = client_.after(problem_.empty() ? certificate_interval_ns : first_certificate_interval_ns,
                         [this] { poll(); });
  if (!call_)
    call_ = client_.send({.target = path_}, [this](const kubernetes::ApiAnswer& a) { secret_answered(a); });
}

void WebhookCertificates::secret_answered(const kubernetes::ApiAnswer& answer) {
  const auto ended = std::move(call_);
  auto stored = answer.is_success() ? read_secret(answer.body)
                                    : Result<StoredCertificates, std::string>(tl::unexpected(answer.problem));
  if (!stored) {
    if (set_.serving.key_pem.empty())
      problem_ = fmt::format("Secret {}: {}", certificate_secret, stored.error());
    return;
  }
  take(stored->set);
  if (hooks_.is_active()) rotate(std::move(*stored));
}

void WebhookCertificates::take(const CertificateSet& set) {
  if (!is_key_of(set.serving.key_pem, set.serving.certificate_pem)) {
    if (set_.serving.key_pem.empty())
      problem_ =
          fmt::format("Secret {} has no certificate yet; the active replica creates it", certificate_secret);
    return;
  }
  problem_.clear();
  const bool is_other = set.serving.certificate_pem != set_.serving.certificate_pem;
  set_ = set;
  if (is_other) hooks_.serve(set_.serving);
}

// A write requires the version that was read, so if two replicas both consider themselves active, only one
// write succeeds.
void WebhookCertificates::rotate(StoredCertificates stored) {
  const RotationStep step = next_step(stored.set, names_, hooks_.utc_s());
  if (step == RotationStep::none) return write_bundle(0);
  auto next = after_step(step, stored.set, names_, hooks_.utc_s());
  if (!next) {
    os::log::error("{}", next.error().message);
    return;
  }
  stored.set = *next;
  call_ = client_.send({.method = "PATCH",
                        .target = path_,
                        .body = secret_patch(stored),
                        .content_type = kubernetes::merge_patch_type},
                       [this, set = std::move(*next)](const kubernetes::ApiAnswer& answer) {
                         const auto ended = std::move(call_);
                         if (!answer.is_success()) {
                           os::log::warning("cannot write Secret {}: {}", certificate_secret, answer.problem);
                           return;
                         }
                         os::log::info("webhook certificates: {} CA in the bundle", set.cas.size());
                         take(set);
                         write_bundle(0);
                       });
}

void WebhookCertificates::write_bundle(size_t configuration) {
  if (configuration == std::size(configurations)) return;
  call_ = client_.send(
      {.target = configurations[configuration]},
      [this, configuration](const kubernetes::ApiAnswer& a) { configuration_answered(configuration, a); });
}

void WebhookCertificates::configuration_answered(size_t configuration, const kubernetes::ApiAnswer& answer) {
  const auto ended = std::move(call_);
  const auto patch = answer.is_success() ? bundle_patch(answer.body, bundle_of(set_))
                                         : Result<std::string, std::string>(tl::unexpected(answer.problem));
  if (!patch) os::log::warning("{}: {}", configurations[configuration], patch.error());
  if (!patch || patch->empty()) return write_bundle(configuration + 1);
  call_ = client_.send({.method = "PATCH",
                        .target = configurations[configuration],
                        .body = *patch,
                        .content_type = strategic_merge_type},
                       [this, configuration](const kubernetes::ApiAnswer& written) {
                         const auto over = std::move(call_);
                         if (!written.is_success())
                           os::log::warning("{}: {}", configurations[configuration], written.problem);
                         write_bundle(configuration + 1);
                       });
}

}  // namespace carve::kubernetes::coordinator
