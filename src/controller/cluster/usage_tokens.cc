#include "controller/cluster/usage_tokens.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/invariant.h"
#include "kubernetes/format/node_reader.h"
#include "wire/api/json_value.h"

namespace carve::controller {
namespace {

using api::Json;

constexpr int64_t lifetime_s = 3600, min_lifetime_s = 60, max_lifetime_s = 86'400;
constexpr size_t max_token_bytes = 64 << 10;

}  // namespace

void UsageTokens::remove(const std::string& node) {
  known_.erase(node);
  calls_.erase(node);
}

void UsageTokens::get(const std::string& node, Got got) {
  invariant(!calls_.contains(node), "one call for a node at a time");
  const auto finish = [this, node, got = std::move(got)](Outcome<std::string> token) {
    const auto ended = calls_.extract(node);  // The call that calls back here.
    got(std::move(token));
  };
  if (const auto known = known_.find(node); known != known_.end() && client_.now() < known->second.until) {
    calls_[node] = client_.after(0, [finish, text = known->second.text] { finish(text); });
    return;
  }
  const Json body{
      {"apiVersion", "authentication.k8s.io/v1"},
      {"kind", "TokenRequest"},
      {"spec",
       {{"audiences", Json::array({kubernetes::usage_audience(node)})}, {"expirationSeconds", lifetime_s}}}};
  calls_[node] = client_.send({.method = "POST",
                               .target = fmt::format("/api/v1/namespaces/{}/serviceaccounts/{}/token",
                                                     account_.name_space, account_.name),
                               .body = body.dump(),
                               .deadline_ns = 10 * kubernetes::second_ns},
                              [this, node, finish](const kubernetes::ApiAnswer& answer) {
                                auto token = read(answer);
                                if (!token) return finish(tl::unexpected(token.error()));
                                known_[node] = *token;
                                finish(std::move(token->text));
                              });
}

Outcome<UsageTokens::Token> UsageTokens::read(const kubernetes::ApiAnswer& answer) const {
  const auto refuse = [&](const std::string& why) {
    return failure(FailureKind::unavailable, "no token of service account {}/{}: {}", account_.name_space,
                   account_.name, why);
  };
  if (!answer.is_success()) return refuse(answer.problem);
  const auto json = api::parse(answer.body);
  if (!json || !json->is_object()) return refuse("the API server's response cannot be read");
  const Json text = json->value(Json::json_pointer("/status/token"), Json());
  const Json seconds = json->value(Json::json_pointer("/spec/expirationSeconds"), Json());
  if (!text.is_string() || text.get<std::string>().empty() ||
      text.get<std::string>().size() > max_token_bytes)
    return refuse("the API server's response has none");
  // The API server may choose another lifetime.
  const int64_t lifetime = seconds.is_number_integer()
                               ? std::clamp(seconds.get<int64_t>(), min_lifetime_s, max_lifetime_s)
                               : min_lifetime_s;
  return Token{.text = text.get<std::string>(),
               .until = client_.now() + lifetime * kubernetes::second_ns * 4 / 5};
}

}  // namespace carve::controller
