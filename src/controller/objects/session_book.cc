#include "controller/objects/session_book.h"

#include <algorithm>

#include "controller/objects/secret_text.h"

namespace carve::controller {
namespace {

constexpr size_t session_name_digits = 8;

// Erases the oldest code of the account if the account has the maximum number.
template <class Codes>
void limit_codes(Codes& codes, const std::string& account) {
  auto oldest = codes.end();
  size_t count = 0;
  for (auto i = codes.begin(); i != codes.end(); ++i) {
    if (i->second.gives.account != account) continue;
    ++count;
    if (oldest == codes.end() || i->second.created_ns < oldest->second.created_ns) oldest = i;
  }
  if (count >= max_codes_of_account) codes.erase(oldest);
}

}  // namespace

SessionBook::SessionBook(SessionJournal& journal, std::vector<Session> sessions) : journal_(journal) {
  for (Session& session : sessions) {
    const std::string name = session.name;
    sessions_.emplace(name, std::move(session));
  }
}

Outcome<std::string> SessionBook::issue_code(const SignIn& gives, int64_t now_ns) {
  std::erase_if(codes_,
                [&](const auto& code) { return now_ns - code.second.created_ns >= code_lifetime_ns; });
  limit_codes(codes_, gives.account);
  auto code = random_secret();
  if (!code) return code;
  codes_.emplace(sha256_hex(*code), Code{.gives = gives, .created_ns = now_ns});
  return code;
}

std::optional<SignIn> SessionBook::redeem(const std::string& code, int64_t now_ns) {
  const auto found = codes_.find(sha256_hex(code));
  if (found == codes_.end()) return std::nullopt;
  const Code known = std::move(found->second);
  codes_.erase(found);
  if (now_ns - known.created_ns >= code_lifetime_ns) return std::nullopt;
  return known.gives;
}

Outcome<SessionBook::Begun> SessionBook::begin(const SignIn& rights, int64_t now_ns) {
  if (auto removed = remove_expired(now_ns); !removed) return tl::unexpected(removed.error());
  if (auto removed = remove_oldest_of(rights.account); !removed) return tl::unexpected(removed.error());
  if (sessions_.size() >= max_sessions)
    return failure(FailureKind::resource_exhausted,
                   "there are {} sessions, which is the limit; end one first: carve token ls, carve token rm",
                   max_sessions);
  auto cookie = random_secret(), page_key = random_secret();
  if (!cookie) return tl::unexpected(cookie.error());
  if (!page_key) return tl::unexpected(page_key.error());
  const std::string cookie_sha256 = sha256_hex(*cookie);
  const int64_t longest = now_ns + session_lifetime_ns;
  Session session{.name = std::string(session_name_prefix) + cookie_sha256.substr(0, session_name_digits),
                  .role = rights.role,
                  .account = rights.account,
                  .token = rights.token,
                  .cookie_sha256 = cookie_sha256,
                  .page_key_sha256 = sha256_hex(*page_key),
                  .created_ns = now_ns,
                  .expires_ns = rights.expires_ns == 0 ? longest : std::min(longest, rights.expires_ns)};
  if (sessions_.contains(session.name))
    return failure(FailureKind::unavailable, "the name {} is in use; sign in again", session.name);
  if (auto written = journal_.write(session); !written) return tl::unexpected(written.error());
  sessions_.emplace(session.name, session);
  return Begun{.session = std::move(session), .cookie = std::move(*cookie), .page_key = std::move(*page_key)};
}

// The comparisons need not take constant time, because the hash of a wrong secret reveals nothing about the
// right one.
std::optional<Session> SessionBook::find(std::string_view cookie, std::string_view page_key,
                                         int64_t now_ns) const {
  const std::string hash = sha256_hex(cookie);
  const auto found = sessions_.find(std::string(session_name_prefix) + hash.substr(0, session_name_digits));
  if (found == sessions_.end()) return std::nullopt;
  const Session& session = found->second;
  if (session.cookie_sha256 != hash || session.page_key_sha256 != sha256_hex(page_key) ||
      session.expires_ns <= now_ns)
    return std::nullopt;
  return session;
}

bool SessionBook::has(const std::string& name, int64_t now_ns) const {
  const auto found = sessions_.find(name);
  return found != sessions_.end() && found->second.expires_ns > now_ns;
}

std::vector<Session> SessionBook::list(int64_t now_ns) const {
  std::vector<Session> out;
  for (const auto& [name, session] : sessions_)
    if (session.expires_ns > now_ns) out.push_back(session);
  return out;
}

Outcome<void> SessionBook::remove(const std::string& name) {
  const auto found = sessions_.find(name);
  if (found == sessions_.end()) return failure(FailureKind::not_found, "there is no session '{}'", name);
  if (auto removed = journal_.remove(found->second); !removed) return removed;
  sessions_.erase(found);
  return {};
}

Outcome<void> SessionBook::remove_of_token(const std::string& token) {
  std::erase_if(codes_, [&](const auto& code) { return code.second.gives.token == token; });
  for (const Session& session : list(0))
    if (session.token == token)
      if (auto removed = remove(session.name); !removed) return removed;
  return {};
}

Outcome<void> SessionBook::remove_expired(int64_t now_ns) {
  for (const Session& session : list(0))
    if (session.expires_ns <= now_ns)
      if (auto removed = remove(session.name); !removed) return removed;
  return {};
}

Outcome<void> SessionBook::remove_oldest_of(const std::string& account) {
  std::vector<Session> own = list(0);
  std::erase_if(own, [&](const Session& session) { return session.account != account; });
  if (own.size() < max_sessions_of_account) return {};
  return remove(std::ranges::min_element(own, {}, &Session::created_ns)->name);
}

}  // namespace carve::controller
