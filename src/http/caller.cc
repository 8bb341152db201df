#include "http/caller.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>

#include "os/user.h"

namespace carve::http {

Caller Caller::user(uint32_t uid, os::ProcessId process, std::span<const uint32_t> operators) {
  Caller out;
  out.who_ = User{uid, process, std::ranges::find(operators, uid) != operators.end(), nullptr, {}};
  return out;
}

Caller Caller::user(os::Peer peer, std::span<const uint32_t> operators) {
  Caller out = user(peer.uid, peer.process, operators);
  std::get<User>(out.who_).pidfd = std::make_shared<const os::Fd>(std::move(peer.pidfd));
  return out;
}

Caller Caller::token(std::string account, Role role) {
  Caller out;
  out.who_ = Token{std::move(account), role};
  return out;
}

Caller Caller::remote(std::string address, std::optional<uint32_t> uid) {
  Caller out;
  out.who_ = Anonymous{std::move(address), uid};
  return out;
}

std::string Caller::address() const {
  const auto* anonymous = std::get_if<Anonymous>(&who_);
  return anonymous != nullptr ? anonymous->address : "";
}

std::string Caller::origin() const {
  const auto* anonymous = std::get_if<Anonymous>(&who_);
  if (anonymous == nullptr) return "";
  std::string host = anonymous->address.substr(0, anonymous->address.rfind(':'));
  return anonymous->uid ? fmt::format("uid {} at {}", *anonymous->uid, host) : host;
}

Caller Caller::operating(std::string reason) const {
  Caller out = *this;
  if (auto* user = std::get_if<User>(&out.who_)) {
    user->operates = true;
    user->operating_reason = std::move(reason);
  }
  return out;
}

std::string Caller::operating_reason() const {
  const auto* user = std::get_if<User>(&who_);
  return user != nullptr ? user->operating_reason : "";
}

Caller Caller::inside(std::string slice) const {
  Caller out;
  if (const auto* user = std::get_if<User>(&who_)) out.who_ = InSlice{*user, std::move(slice)};
  return out;
}

const std::string* Caller::slice() const {
  const auto* in = std::get_if<InSlice>(&who_);
  return in != nullptr ? &in->slice : nullptr;
}

const Caller::User* Caller::process_of() const {
  if (const auto* in = std::get_if<InSlice>(&who_)) return &in->user;
  return std::get_if<User>(&who_);
}

std::optional<os::ProcessId> Caller::process() const {
  const User* const user = process_of();
  return user != nullptr ? std::optional(user->process) : std::nullopt;
}

std::optional<uint32_t> Caller::uid() const {
  const User* const user = process_of();
  return user != nullptr ? std::optional(user->uid) : std::nullopt;
}

bool Caller::has_ended() const {
  const User* const user = process_of();
  return user != nullptr && user->pidfd && !os::alive(*user->pidfd);
}

std::optional<os::Peer> Caller::peer() const {
  const User* const user = process_of();
  if (user == nullptr || !user->pidfd || has_ended()) return std::nullopt;
  os::Fd pidfd(fcntl(user->pidfd->get(), F_DUPFD_CLOEXEC, 0));
  if (!pidfd) return std::nullopt;
  return os::Peer(user->process, std::move(pidfd), user->uid);
}

const std::string* Caller::token_account() const {
  const auto* token = std::get_if<Token>(&who_);
  return token != nullptr ? &token->account : nullptr;
}

bool Caller::may_create() const {
  if (const auto* token = std::get_if<Token>(&who_)) return token->role >= Role::user;
  return std::holds_alternative<User>(who_);
}

bool Caller::owns(uint32_t owner, std::string_view account, Role least) const {
  if (const auto* token = std::get_if<Token>(&who_))
    return !account.empty() && token->account == account && token->role >= least;
  return uid() == owner;
}

bool Caller::may_see(uint32_t owner, std::string_view account) const {
  return may_operate() || owns(owner, account, Role::viewer);
}

bool Caller::may_change(uint32_t owner, std::string_view account) const {
  return may_operate() || owns(owner, account, Role::user);
}

bool Caller::may_operate() const {
  if (const auto* user = std::get_if<User>(&who_)) return user->operates;
  if (const auto* token = std::get_if<Token>(&who_)) return token->role == Role::operate;
  return false;
}

std::string Caller::text() const {
  if (const auto* token = std::get_if<Token>(&who_)) return "account " + token->account;
  const auto known = uid();
  if (!known) return "anonymous";
  const std::string name = os::uid_text(*known);
  return slice() != nullptr ? fmt::format("{} in slice {}", name, *slice()) : name;
}

}  // namespace carve::http
