#include "http/caller.h"

#include <fmt/format.h>

#include <algorithm>

namespace carve::http {

Caller Caller::user(uint32_t uid, os::ProcessId process, std::span<const uint32_t> operators) {
  Caller out;
  out.who_ = User{uid, process, std::ranges::find(operators, uid) != operators.end()};
  return out;
}

Caller Caller::token(std::string account, Role role) {
  Caller out;
  out.who_ = Token{std::move(account), role};
  return out;
}

Caller Caller::remote(std::string address) {
  Caller out;
  out.who_ = Anonymous{std::move(address)};
  return out;
}

std::string Caller::address() const {
  const auto* anonymous = std::get_if<Anonymous>(&who_);
  return anonymous != nullptr ? anonymous->address : "";
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

std::optional<os::ProcessId> Caller::process() const {
  if (const auto* user = std::get_if<User>(&who_)) return user->process;
  if (const auto* in = std::get_if<InSlice>(&who_)) return in->user.process;
  return std::nullopt;
}

std::optional<uint32_t> Caller::uid() const {
  if (const auto* user = std::get_if<User>(&who_)) return user->uid;
  if (const auto* in = std::get_if<InSlice>(&who_)) return in->user.uid;
  return std::nullopt;
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
  const std::string name = *known == 0 ? "root" : fmt::format("uid {}", *known);
  return slice() != nullptr ? fmt::format("{} in slice {}", name, *slice()) : name;
}

}  // namespace carve::http
