#include "kubernetes/coordinator/webhook/review.h"

#include <openssl/evp.h>

namespace carve::kubernetes::coordinator {
namespace {

using api::Json;

constexpr const char* api_version = "admission.k8s.io/v1";
constexpr size_t max_object_levels = 64;  // managedFields and affinities are deeper than Carve's documents.

std::string text_at(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

Json member_at(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_object() ? *found : Json();
}

std::string base64(const std::string& bytes) {
  std::string out(4 * ((bytes.size() + 2) / 3) + 1, '\0');  // EVP_EncodeBlock appends a NUL.
  const int length =
      EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                      reinterpret_cast<const unsigned char*>(bytes.data()), static_cast<int>(bytes.size()));
  out.resize(static_cast<size_t>(length));
  return out;
}

std::string answer(const std::string& uid, Json response) {
  response["uid"] = uid;
  const Json out{{"apiVersion", api_version}, {"kind", "AdmissionReview"}, {"response", response}};
  return out.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

Result<Review, std::string> read_review(std::string_view json) {
  // The review of an update contains the object twice.
  const auto review = api::parse(json, api::Decimals::as_doubles, max_object_levels, 2 * api::max_nodes);
  if (!review) return tl::unexpected(review.error());
  if (!review->is_object() || text_at(*review, "kind") != "AdmissionReview" ||
      text_at(*review, "apiVersion") != api_version)
    return tl::unexpected(fmt::format("not an AdmissionReview of {}", api_version));
  const auto request = review->find("request");
  if (request == review->end() || !request->is_object() || text_at(*request, "uid").empty())
    return tl::unexpected(std::string("the review has no request with a uid"));
  return Review{.uid = text_at(*request, "uid"),
                .operation = text_at(*request, "operation"),
                .name_space = text_at(*request, "namespace"),
                .object = member_at(*request, "object"),
                .old_object = member_at(*request, "oldObject")};
}

std::string accept(const std::string& uid, const Json& before, const Json& after,
                   const std::vector<std::string>& warnings) {
  Json response{{"allowed", true}};
  if (const Json patch = Json::diff(before, after); !patch.empty()) {
    response["patchType"] = "JSONPatch";
    response["patch"] = base64(patch.dump());
  }
  if (!warnings.empty()) response["warnings"] = warnings;
  return answer(uid, std::move(response));
}

std::string accept(const std::string& uid) { return answer(uid, {{"allowed", true}}); }

std::string refuse(const std::string& uid, unsigned status, const std::string& message) {
  return answer(uid, {{"allowed", false},
                      {"status",
                       {{"code", status},
                        {"reason", status == unprocessable ? "Invalid" : "ServiceUnavailable"},
                        {"message", message}}}});
}

std::string message_of(const api::FieldErrors& errors) {
  std::string out;
  for (const api::FieldError& error : errors) out += (out.empty() ? "" : "; ") + error.message;
  return out;
}

}  // namespace carve::kubernetes::coordinator
