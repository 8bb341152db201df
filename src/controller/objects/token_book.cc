#include "controller/objects/token_book.h"

#include <algorithm>

#include "controller/objects/secret_text.h"

namespace carve::controller {
namespace {

using os::MutexLock;

constexpr std::string_view role_words[] = {"viewer", "user", "operator"};

}  // namespace

std::string_view text(http::Role role) { return role_words[static_cast<size_t>(role)]; }

std::optional<http::Role> parse_role(std::string_view word) {
  const auto* found = std::ranges::find(role_words, word);
  if (found == std::end(role_words)) return std::nullopt;
  return static_cast<http::Role>(found - std::begin(role_words));
}

http::Role role_of(const http::Caller& caller) {
  if (caller.may_operate()) return http::Role::operate;
  return caller.may_create() ? http::Role::user : http::Role::viewer;
}

TokenBook::TokenBook(TokenJournal& journal, std::vector<Token> tokens) : journal_(journal) {
  for (Token& token : tokens) {
    const std::string name = token.name;
    tokens_.emplace(name, std::move(token));
  }
}

Outcome<std::string> TokenBook::add(Token token) {
  const MutexLock lock(mutex_);
  if (tokens_.contains(token.name))
    return failure(FailureKind::already_exists,
                   "token '{}' already exists; remove it first with carve token rm", token.name);
  if (tokens_.size() == max_tokens)
    return failure(FailureKind::resource_exhausted,
                   "there are {} tokens, which is the limit; remove one first", max_tokens);
  const auto random = random_secret();
  if (!random) return tl::unexpected(random.error());
  std::string whole = std::string(token_prefix) + *random;
  token.sha256 = sha256_hex(whole);
  if (auto written = journal_.write(token); !written) return tl::unexpected(written.error());
  const std::string name = token.name;
  tokens_.emplace(name, std::move(token));
  return whole;
}

Outcome<void> TokenBook::remove(const std::string& name) {
  const MutexLock lock(mutex_);
  const auto found = tokens_.find(name);
  if (found == tokens_.end()) return failure(FailureKind::not_found, "there is no token '{}'", name);
  if (auto removed = journal_.remove(found->second); !removed) return removed;
  tokens_.erase(found);
  return {};
}

std::vector<Token> TokenBook::list() const {
  const MutexLock lock(mutex_);
  std::vector<Token> out;
  for (const auto& [name, token] : tokens_) out.push_back(token);
  return out;
}

std::optional<Token> TokenBook::find(std::string_view text, int64_t now_ns) const {
  const std::string hash = sha256_hex(text);
  const MutexLock lock(mutex_);
  // The comparison need not take constant time, because the hash of an unknown token reveals nothing about a
  // known one.
  const auto found = std::ranges::find_if(tokens_, [&](const auto& t) { return t.second.sha256 == hash; });
  if (found == tokens_.end()) return std::nullopt;
  const Token& token = found->second;
  if (token.expires_ns != 0 && token.expires_ns <= now_ns) return std::nullopt;
  return token;
}

std::optional<http::Caller> TokenBook::caller(std::string_view text, int64_t now_ns) const {
  const auto token = find(text, now_ns);
  if (!token) return std::nullopt;
  return http::Caller::token(token->account, token->role);
}

bool WrongTokens::may_try(const std::string& origin, int64_t now_ns) {
  const auto found = windows_.find(origin);
  return found == windows_.end() || now_ns - found->second.begin_ns >= window_ns ||
         found->second.failures < max_attempts;
}

void WrongTokens::failed(const std::string& origin, int64_t now_ns) {
  std::erase_if(windows_, [&](const auto& entry) { return now_ns - entry.second.begin_ns >= window_ns; });
  if (windows_.size() >= max_origins && !windows_.contains(origin)) windows_.erase(windows_.begin());
  Window& window = windows_[origin];
  if (window.failures == 0) window.begin_ns = now_ns;
  ++window.failures;
}

}  // namespace carve::controller
