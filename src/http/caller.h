// The sender of a request, and its rights. A caller is anonymous, and has no rights, until the serving
// program has identified it. The server identifies the caller once per connection. The caller keeps the pidfd
// of its process, so the identity ends with the process: another process that has inherited the connection is
// not mistaken for it.
//
//   anonymous   a TCP connection without a token
//   user        a process of this machine, identified by the kernel (SO_PEERPIDFD)
//   slice       such a process that runs inside a slice; it may not manage slices
//   token       a TCP connection with a token: an account and a role
#pragma once

#include <memory>
#include <span>
#include <string>
#include <variant>

#include "core/event_budget.h"
#include "os/socket.h"

namespace carve::http {

enum class Role : uint8_t {
  viewer,   // May see the objects of its account.
  user,     // May also change them.
  operate,  // May see and change everything.
};

class Caller {
 public:
  Caller() = default;  // Anonymous.
  // `operators` are the uids that may operate, such as root's and the program's own.
  static Caller user(os::Peer peer, std::span<const uint32_t> operators);
  // Like the function above, but without a pidfd, for tests: the process never ends.
  static Caller user(uint32_t uid, os::ProcessId process, std::span<const uint32_t> operators);
  static Caller token(std::string account, Role role);
  // Returns an anonymous caller over TCP at this address ("127.0.0.1:53210"). `uid` is that of its socket if
  // it is on this machine; it gives no rights.
  static Caller remote(std::string address, std::optional<uint32_t> uid = {});
  // Returns a caller for the same process that may operate for this reason, such as "a member of group NAME".
  Caller operating(std::string reason) const;
  // Returns a caller for the same process that is known to run inside the slice.
  Caller inside(std::string slice) const;

  bool anonymous() const { return std::holds_alternative<Anonymous>(who_); }
  // Returns the name of the slice in which the caller runs, or null.
  const std::string* slice() const;
  // Returns the caller's process, or no value for a caller on another machine.
  std::optional<os::ProcessId> process() const;
  // Returns the caller's uid, or no value for a caller on another machine.
  std::optional<uint32_t> uid() const;
  // Returns whether the caller's process has ended. Its pid may then belong to another process.
  bool has_ended() const;
  // Returns the caller's process with a pidfd of its own, or no value if it has ended or is on another
  // machine.
  std::optional<os::Peer> peer() const;

  // Returns the address of an anonymous caller over TCP. Empty if unknown, or for a process of this machine.
  std::string address() const;
  // Returns the key by which connections and attempts of an anonymous caller are counted: its host, with its
  // user if known ("uid 1000 at 127.0.0.1"). Empty for other callers.
  std::string origin() const;
  // Returns the account of a caller with a token, or null.
  const std::string* token_account() const;
  // Returns whether the caller may create objects of its own.
  bool may_create() const;

  // Return whether the caller has these rights to objects of the uid `owner` and of `account`.
  bool may_see(uint32_t owner, std::string_view account = {}) const;
  bool may_change(uint32_t owner, std::string_view account = {}) const;
  // Returns whether the caller may see and change the objects of others, and the node itself.
  bool may_operate() const;

  // Returns why the caller may operate if operating() gave it the right; otherwise empty.
  std::string operating_reason() const;

  // Returns the caller's name for events and logs: "root", "uid 1000", "account research", "anonymous".
  std::string text() const;
  // Returns the caller as the cause of log lines. Lines count against the budget of their cause; operators
  // have a reserved budget (core/event_budget.h).
  Cause cause() const { return {.who = text(), .has_reserve = may_operate()}; }

 private:
  struct Anonymous {
    std::string address;
    std::optional<uint32_t> uid;
  };
  struct User {
    uint32_t uid;
    os::ProcessId process;
    bool operates;
    std::shared_ptr<const os::Fd> pidfd;
    std::string operating_reason = {};
  };
  struct InSlice {
    User user;
    std::string slice;
  };
  struct Token {
    std::string account;
    Role role;
  };
  const User* process_of() const;  // Null for a caller without a process.
  // Returns whether the caller is the owner and has at least the role `least`.
  bool owns(uint32_t owner, std::string_view account, Role least) const;

  std::variant<Anonymous, User, InSlice, Token> who_;
};

}  // namespace carve::http
