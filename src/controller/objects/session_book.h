// The sessions of browsers that are signed in to the console, and the one-time codes that begin them.
//
// A session has two secrets, and a request needs both: the cookie, and the page key, which a page sends in a
// header. A browser sends a host's cookies to every port of that host, so a program that listens on another
// port of this machine can receive the cookie. Only the console's own pages hold the page key.
//
// Used only on the API's loop.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/failure.h"
#include "http/caller.h"

namespace carve::controller {

inline constexpr int64_t session_lifetime_ns = 12 * 3'600'000'000'000;
inline constexpr int64_t code_lifetime_ns = 5 * 60'000'000'000;
inline constexpr size_t max_sessions = 1000;
inline constexpr size_t max_sessions_of_account = 32;
inline constexpr size_t max_codes_of_account = 8;
inline constexpr std::string_view session_name_prefix = "session-";

// A caller's rights, which a code or a token gives to a session.
struct SignIn {
  http::Role role = http::Role::viewer;
  std::string account;
  std::string token;       // Name of the token. Empty for a code.
  int64_t expires_ns = 0;  // UTC, of the token; 0 if never.
};

struct Session {
  std::string name;  // "session-" and 8 characters.
  http::Role role = http::Role::viewer;
  std::string account;
  std::string token;          // Name of the token that began it. Empty for a code.
  std::string cookie_sha256;  // In hex.
  std::string page_key_sha256;
  int64_t created_ns = 0;  // UTC.
  int64_t expires_ns = 0;  // UTC.

  friend bool operator==(const Session&, const Session&) = default;
};

// The destination of stored sessions. Each call is one transaction.
class SessionJournal {
 public:
  virtual ~SessionJournal() = default;
  virtual Outcome<void> write(const Session&) = 0;
  virtual Outcome<void> remove(const Session&) = 0;
};

class SessionBook {
 public:
  SessionBook(SessionJournal& journal, std::vector<Session> sessions);

  // Returns a new code that begins one session with these rights within code_lifetime_ns. If the account has
  // max_codes_of_account unused codes, the oldest one becomes invalid.
  Outcome<std::string> issue_code(const SignIn&, int64_t now_ns);
  // Returns the rights that the code gives, and makes the code invalid; no value if it is unknown, used or too
  // old.
  std::optional<SignIn> redeem(const std::string& code, int64_t now_ns);

  struct Begun {
    Session session;
    std::string cookie, page_key;
  };
  // Begins a session of session_lifetime_ns, or less if the token expires earlier. If the account has
  // max_sessions_of_account sessions, ends its oldest one. Fails with resource_exhausted.
  Outcome<Begun> begin(const SignIn&, int64_t now_ns);

  // Returns the session with these secrets; no value if there is none or it has expired.
  std::optional<Session> find(std::string_view cookie, std::string_view page_key, int64_t now_ns) const;
  // Returns whether the session exists and has not expired.
  bool has(const std::string& name, int64_t now_ns) const;
  // Returns the sessions that have not expired, ordered by name.
  std::vector<Session> list(int64_t now_ns) const;
  Outcome<void> remove(const std::string& name);
  // Ends the sessions that the token began, and makes its codes invalid.
  Outcome<void> remove_of_token(const std::string& token);

 private:
  struct Code {
    SignIn gives;
    int64_t created_ns = 0;
  };
  Outcome<void> remove_expired(int64_t now_ns);
  Outcome<void> remove_oldest_of(const std::string& account);

  SessionJournal& journal_;
  std::map<std::string, Session> sessions_;  // By name.
  std::map<std::string, Code> codes_;  // By the code's SHA-256. Not stored: a restart makes them invalid.
};

}  // namespace carve::controller
