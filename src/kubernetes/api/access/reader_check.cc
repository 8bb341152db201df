#include "kubernetes/api/access/reader_check.h"

#include <openssl/sha.h>

#include <algorithm>
#include <optional>

#include "wire/api/json_value.h"

namespace carve::kubernetes {
namespace {

using api::Json;

http::Response refused(unsigned status, const std::string& path) {
  const std::string message =
      status == 401   ? "send the token of a service account in the header 'Authorization: Bearer TOKEN'"
      : status == 403 ? "the account is not allowed to get " + path
                      : "the API server does not respond";
  http::Response out{.status = status, .type = "text/plain", .content = message + "\n"};
  if (status == 401) out.headers.push_back({"WWW-Authenticate", "Bearer"});
  return out;
}

// A path and an audience contain no space, so the text is different for each triple.
std::string key_of(const std::string& audience, const std::string& path, const std::string& token) {
  const std::string text = audience + " " + path + " " + token;
  std::string out(SHA256_DIGEST_LENGTH, '\0');
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(),
         reinterpret_cast<unsigned char*>(out.data()));
  return out;
}

Json status_of(const ApiAnswer& answer) {
  const auto review = answer.is_success() ? api::parse(answer.body) : Result<Json, std::string>(Json());
  if (!review || !review->is_object()) return {};
  const auto status = review->find("status");
  return status != review->end() && status->is_object() ? *status : Json();
}

bool is_true(const Json& object, const char* key) {
  if (!object.is_object()) return false;
  const auto found = object.find(key);
  return found != object.end() && found->is_boolean() && found->get<bool>();
}

// Returns whether the review confirms the audience. An authenticator that does not know audiences returns
// none, and then nothing is known about the token (TokenReviewStatus, authentication.k8s.io/v1).
bool has_audience(const Json& status, const std::string& audience) {
  if (audience.empty()) return true;
  const auto confirmed = status.find("audiences");
  return confirmed != status.end() && confirmed->is_array() &&
         std::ranges::find(*confirmed, Json(audience)) != confirmed->end();
}

// Builds the spec of a SubjectAccessReview for the user that a TokenReview returned.
Json access_of(const Json& user, const std::string& path) {
  Json spec{{"nonResourceAttributes", {{"path", path}, {"verb", "get"}}}};
  spec["user"] = user.value("username", Json(""));
  for (const auto& [from, to] : {std::pair{"groups", "groups"}, {"uid", "uid"}, {"extra", "extra"}})
    if (user.contains(from)) spec[to] = user[from];
  return spec;
}

// A response that waits for the reviews or for the text. It is owned by its connection.
struct WaitingReader {
  http::LaterAnswer* later = nullptr;
  std::optional<http::Response> early;  // Set if the response was ready before the connection began to wait.

  void give(http::Response response) {
    if (later != nullptr)
      std::exchange(later, nullptr)->answer(std::move(response));
    else
      early = std::move(response);
  }
};

http::Response response_of(const std::shared_ptr<WaitingReader>& waiting) {
  if (waiting->early) return std::move(*waiting->early);
  return {.content = http::LaterContent{[waiting](http::LaterAnswer& later) {
            waiting->later = &later;
            return std::shared_ptr<void>(waiting.get(), [waiting](void*) { waiting->later = nullptr; });
          }}};
}

}  // namespace

http::Response ReaderCheck::answer(const http::Request& request, const Source& source,
                                   const std::string& audience) {
  const auto token = http::bearer_token(request.headers);
  if (!token) return refused(401, request.path);
  const auto waiting = std::make_shared<WaitingReader>();
  const auto decided = [waiting, source, path = request.path](unsigned status) {
    if (status != 200) return waiting->give(refused(status, path));
    source([waiting](http::Response response) { waiting->give(std::move(response)); });
  };
  const std::string key = key_of(audience, request.path, std::string(*token));
  if (const auto known = known_.find(key); known != known_.end() && client_.now() < known->second.until)
    decided(known->second.status);
  else if (questions_.size() >= max_asked)
    decided(503);
  else
    ask({.path = request.path, .audience = audience, .key = key, .done = decided}, std::string(*token));
  return response_of(waiting);
}

void ReaderCheck::ask(Question asked, const std::string& token) {
  const uint64_t number = next_++;
  Question& question = questions_[number] = std::move(asked);
  Json body{
      {"apiVersion", "authentication.k8s.io/v1"}, {"kind", "TokenReview"}, {"spec", {{"token", token}}}};
  if (!question.audience.empty()) body["spec"]["audiences"] = Json::array({question.audience});
  question.call = client_.send(
      {.method = "POST", .target = "/apis/authentication.k8s.io/v1/tokenreviews", .body = body.dump()},
      [this, number](const ApiAnswer& a) { reviewed(number, a); });
}

void ReaderCheck::reviewed(uint64_t number, const ApiAnswer& answer) {
  if (!answer.is_success()) return finish(number, 503);
  const Json status = status_of(answer);
  if (!is_true(status, "authenticated") || !status.contains("user") || !status["user"].is_object())
    return finish(number, 401);
  if (!has_audience(status, questions_.at(number).audience)) return finish(number, 401);
  const Json body{{"apiVersion", "authorization.k8s.io/v1"},
                  {"kind", "SubjectAccessReview"},
                  {"spec", access_of(status["user"], questions_.at(number).path)}};
  questions_.at(number).call = client_.send(
      {.method = "POST", .target = "/apis/authorization.k8s.io/v1/subjectaccessreviews", .body = body.dump()},
      [this, number](const ApiAnswer& a) { allowed(number, a); });
}

void ReaderCheck::allowed(uint64_t number, const ApiAnswer& answer) {
  if (!answer.is_success()) return finish(number, 503);
  finish(number, is_true(status_of(answer), "allowed") ? 200 : 403);
}

void ReaderCheck::finish(uint64_t number, unsigned status) {
  auto question = questions_.extract(number);
  if (status != 503) {
    if (known_.size() >= max_known) known_.clear();
    known_[question.mapped().key] = {status, client_.now() + trust_ns};
  }
  question.mapped().done(status);
}

}  // namespace carve::kubernetes
