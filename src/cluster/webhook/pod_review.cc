#include "cluster/webhook/pod_review.h"

#include <openssl/evp.h>

#include "fronts/pod/admission.h"

namespace carve::cluster {
namespace {

using api::Json;

constexpr const char* api_version = "admission.k8s.io/v1";
constexpr size_t max_pod_levels = 64;  // managedFields and affinities are deeper than documents of ours.
constexpr unsigned unprocessable = 422;

std::string text_at(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

std::string base64(const std::string& bytes) {
  std::string out(4 * ((bytes.size() + 2) / 3) + 1, '\0');  // EVP_EncodeBlock appends a NUL.
  const int length =
      EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                      reinterpret_cast<const unsigned char*>(bytes.data()), static_cast<int>(bytes.size()));
  out.resize(static_cast<size_t>(length));
  return out;
}

Json refusal(const api::FieldErrors& errors) {
  std::string message;
  for (const api::FieldError& error : errors) message += (message.empty() ? "" : "; ") + error.sentence;
  return {{"allowed", false},
          {"status", {{"code", unprocessable}, {"reason", "Invalid"}, {"message", message}}}};
}

Json acceptance(const Json& before, const fronts::AdmittedPod& admitted) {
  Json out{{"allowed", true}};
  if (const Json patch = Json::diff(before, admitted.pod); !patch.empty()) {
    out["patchType"] = "JSONPatch";
    out["patch"] = base64(patch.dump());
  }
  if (!admitted.warnings.empty()) out["warnings"] = admitted.warnings;
  return out;
}

}  // namespace

Result<PodReview, std::string> review_pod(std::string_view json, const fronts::PodSettings& settings) {
  const auto review = api::parse(json, api::Decimals::as_doubles, max_pod_levels);
  if (!review) return tl::unexpected(review.error());
  if (!review->is_object() || text_at(*review, "kind") != "AdmissionReview" ||
      text_at(*review, "apiVersion") != api_version)
    return tl::unexpected(fmt::format("it is no AdmissionReview of {}", api_version));
  const auto request = review->find("request");
  if (request == review->end() || !request->is_object() || text_at(*request, "uid").empty())
    return tl::unexpected(std::string("the review has no request with a uid"));
  const auto object = request->find("object");
  if (text_at(*request, "operation") != "CREATE" || object == request->end() || !object->is_object())
    return tl::unexpected(std::string("the request does not create a pod"));

  const auto admitted = fronts::admit(*object, settings);
  Json response = admitted ? acceptance(*object, *admitted) : refusal(admitted.error());
  response["uid"] = text_at(*request, "uid");
  const Json answer{{"apiVersion", api_version}, {"kind", "AdmissionReview"}, {"response", response}};
  return PodReview{.answer = answer.dump(-1, ' ', false, Json::error_handler_t::replace),
                   .is_allowed = admitted.has_value(),
                   .is_sliced = admitted && admitted->is_sliced};
}

}  // namespace carve::cluster
