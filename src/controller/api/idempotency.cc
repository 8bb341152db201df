#include "controller/api/idempotency.h"

#include <algorithm>

#include "controller/api/api_call.h"
#include "controller/api/query.h"
#include "controller/objects/secret_text.h"
#include "os/log.h"

namespace carve::controller {
namespace {

// The responses to these paths contain secrets, which are not stored.
constexpr std::string_view secret_paths[] = {"/v1/tokens", "/v1/session", "/v1/codes"};

// Returns the identity to which a key belongs. Two callers of one account with different roles differ,
// because a response may contain data that only one of them may see.
std::string identity_of(const http::Caller& caller) {
  return fmt::format("{} as {}", caller.text(), text(role_of(caller)));
}

http::Response refuse_reuse(const std::string& key) {
  const api::Problem problem{
      .type = "carve:key-reused",
      .title = "key reused",
      .status = 422,
      .detail =
          fmt::format("Idempotency-Key '{}' was already used for another request; use a new key for each",
                      key.substr(0, max_shown_bytes))};
  return {problem.status, "application/problem+json", api::write(problem)};
}

http::Response response_of(const KeptAnswer& answer) {
  http::Response out{answer.status, answer.type, answer.body};
  if (!answer.etag.empty()) out.headers.push_back({"ETag", answer.etag});
  return out;
}

std::string etag_of(const http::Response& response) {
  const auto found = std::ranges::find(response.headers, "ETag", &http::Header::name);
  return found == response.headers.end() ? "" : found->value;
}

}  // namespace

http::Response answer_once(const http::Request& request, const http::Caller& caller, AnswerJournal& journal,
                           int64_t now_ns, const std::function<http::Response()>& make) {
  const std::string* key = request.headers.find("Idempotency-Key");
  const bool has_secret = std::ranges::any_of(
      secret_paths, [&](std::string_view path) { return request.path.starts_with(path); });
  if (key == nullptr || request.method != "POST" || has_secret) return make();
  const bool is_plain = std::ranges::all_of(*key, [](char c) { return c > ' ' && c <= '~'; });
  if (key->empty() || key->size() > max_idempotency_key_bytes || !is_plain ||
      request.headers.count("Idempotency-Key") != 1)
    return refuse(
        FailureKind::invalid_argument,
        fmt::format("Idempotency-Key: must have 1 to {} visible characters", max_idempotency_key_bytes));
  KeptAnswer answer{
      .caller = identity_of(caller),
      .key = *key,
      .sha256 = sha256_hex(fmt::format("{}\n{}\n{}", request.path, request.query, request.body)),
      .at_ns = now_ns,
  };
  const auto kept = journal.find(answer.caller, answer.key);
  if (!kept) return refuse(kept.error());
  if (*kept && now_ns - (*kept)->at_ns < answer_lifetime_ns)
    return (*kept)->sha256 == answer.sha256 ? response_of(**kept) : refuse_reuse(*key);
  http::Response made = make();
  const auto* body = std::get_if<std::string>(&made.content);
  if (body == nullptr || made.status / 100 != 2 || body->size() > max_kept_answer_bytes) return made;
  answer.status = made.status;
  answer.type = made.type;
  answer.etag = etag_of(made);
  answer.body = *body;
  if (const auto written = journal.write(answer); !written)
    os::log::error(caller.cause(), "cannot store the response to a request with an Idempotency-Key: {}",
                   written.error().message);
  return made;
}

}  // namespace carve::controller
