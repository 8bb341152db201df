// The tokens of callers over TCP. A token is `carve_` followed by 43 characters (32 random bytes in
// base64url). Only its SHA-256 is stored, so a stolen database contains no usable token. A token has a role
// and an account.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/failure.h"
#include "http/caller.h"
#include "os/mutex.h"

namespace carve::controller {

inline constexpr std::string_view token_prefix = "carve_";
inline constexpr size_t max_tokens = 1000;

struct Token {
  std::string name;
  http::Role role = http::Role::viewer;
  std::string account;
  std::string sha256;      // In hex.
  int64_t created_ns = 0;  // UTC.
  int64_t expires_ns = 0;  // UTC; 0 if never.

  friend bool operator==(const Token&, const Token&) = default;
};

// Returns "viewer", "user" or "operator".
std::string_view text(http::Role);
std::optional<http::Role> parse_role(std::string_view);
// Returns the role whose rights the caller has.
http::Role role_of(const http::Caller&);

// The destination of stored tokens. Each call is one transaction.
class TokenJournal {
 public:
  virtual ~TokenJournal() = default;
  virtual Outcome<void> write(const Token&) = 0;
  virtual Outcome<void> remove(const Token&) = 0;
};

class TokenBook {
 public:
  TokenBook(TokenJournal& journal, std::vector<Token> tokens);

  // Adds the token and returns its text, which is not stored. Fails with already_exists or
  // resource_exhausted.
  Outcome<std::string> add(Token token) EXCLUDES(mutex_);
  Outcome<void> remove(const std::string& name) EXCLUDES(mutex_);
  std::vector<Token> list() const EXCLUDES(mutex_);
  // Returns the token with this text; no value if the token is unknown or has expired.
  std::optional<Token> find(std::string_view text, int64_t now_ns) const EXCLUDES(mutex_);
  // Returns the caller with this token; no value if the token is unknown or has expired.
  std::optional<http::Caller> caller(std::string_view text, int64_t now_ns) const EXCLUDES(mutex_);

 private:
  TokenJournal& journal_;
  mutable os::Mutex mutex_;
  std::map<std::string, Token> tokens_ GUARDED_BY(mutex_);  // Keyed by name.
};

// Limits attempts with wrong tokens to ten per minute and origin. An origin is an address or a user of this
// machine (http::Caller::origin()).
class WrongTokens {
 public:
  static constexpr unsigned max_attempts = 10;
  static constexpr int64_t window_ns = 60'000'000'000;
  static constexpr size_t max_origins = 10'000;

  // Returns whether the origin may try a token now.
  bool may_try(const std::string& origin, int64_t now_ns);
  void failed(const std::string& origin, int64_t now_ns);

 private:
  struct Window {
    int64_t begin_ns = 0;
    unsigned failures = 0;
  };
  std::map<std::string, Window> windows_;  // Keyed by origin.
};

}  // namespace carve::controller
