// The part of planning.h that decides a caller's rights to an object: who owns it, who may change it, and who
// may see it.
#include <charconv>

#include "controller/api/planning.h"
#include "controller/api/query.h"
#include "controller/objects/job_form.h"

namespace carve::controller {

using Pointer = ObjectRegistry::Pointer;

namespace {

tl::unexpected<Failure> refuse_viewer(const http::Caller& caller) {
  return failure(FailureKind::permission_denied,
                 "{} may view objects but not change them; use a token with the role 'user'", caller.text());
}

}  // namespace

Outcome<Owner> owner_of(const Call& call, const AccountField& wanted) {
  const std::string& wanted_account = wanted.account;
  const Views& views = call.context.views;
  if (!call.caller.may_create()) return refuse_viewer(call.caller);
  if (const auto uid = call.caller.uid()) {
    const std::string own = views.user_name(*uid);
    if (!wanted_account.empty() && wanted_account != own && !call.caller.may_operate())
      return failure(FailureKind::permission_denied,
                     "{}: '{}' is not the account of {}; leave the account out", wanted.field,
                     wanted_account.substr(0, 80), own);
    return Owner{*uid, wanted_account.empty() ? own : wanted_account};
  }
  const std::string account = *call.caller.token_account();
  const auto uid = views.uid_of(account);
  if (!uid)
    return failure(FailureKind::failed_precondition,
                   "account '{}': programs of a token run as the user with that name, but this machine has "
                   "no such user; create the user, or use another token",
                   account);
  if (!wanted_account.empty() && wanted_account != account && !call.caller.may_operate())
    return failure(FailureKind::permission_denied,
                   "{}: '{}' is not the account of the token, '{}'; leave the account out", wanted.field,
                   wanted_account.substr(0, 80), account);
  return Owner{*uid, wanted_account.empty() ? account : wanted_account};
}

Outcome<void> check_start(const Call& call, uint32_t owner_uid) {
  const std::string problem = call.context.views.start_problem(owner_uid);
  if (!problem.empty()) return failure(FailureKind::failed_precondition, "{}", problem);
  return {};
}

namespace {

tl::unexpected<Failure> refuse_change(const ObjectKey& key) {
  return failure(FailureKind::permission_denied,
                 "{} belongs to another user; only its owner, its account and operators may change it",
                 text(key));
}

}  // namespace

Outcome<void> check_version(const Call& call, const Object& object) {
  const std::string* header = call.request.headers.find("If-Match");
  if (header == nullptr || *header == "*") return {};
  uint64_t version = 0;
  const std::string digits = header->size() > 2 ? header->substr(1, header->size() - 2) : "";
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), version);
  if (error != std::errc() || end != digits.data() + digits.size())
    return failure(FailureKind::invalid_argument, "If-Match '{}' is not an ETag of this API",
                   header->substr(0, 80));
  if (version != object.version)
    return failure(FailureKind::stale, "{} has version {}, not {}; read the object again", text(object.key),
                   object.version, version);
  return {};
}

// Rejects another account. The paying account is fixed when the object is created, because its usage records
// and slices contain the account.
Outcome<void> check_account(const Object& present, const objects::Metadata& wanted) {
  if (wanted.account.empty() || wanted.account == present.account) return {};
  return failure(FailureKind::failed_precondition,
                 "metadata.account: '{}': account '{}' pays for {}, and this cannot be changed; leave the "
                 "account out, or delete the object and apply it again",
                 wanted.account.substr(0, max_shown_bytes), present.account, text(present.key));
}

Outcome<void> check_change(const Call& call, const Object& object) {
  if (!call.caller.may_create()) return refuse_viewer(call.caller);
  if (!call.caller.may_change(object.owner_uid, object.account)) return refuse_change(object.key);
  if (object.is_ending)
    return failure(FailureKind::failed_precondition, "{} is being deleted; apply it again when it is gone",
                   text(object.key));
  return {};
}

Outcome<ObjectKey> key_of(const Call& call) {
  const auto query = parse_query(call.request.query, {"namespace"});
  if (!query) return tl::unexpected(query.error());
  const auto space = query->find("namespace");
  return ObjectKey{call.kind, space == query->end() ? "default" : space->second, call.names[0]};
}

Outcome<Pointer> named_object(const Call& call) {
  const auto key = key_of(call);
  if (!key) return tl::unexpected(key.error());
  Pointer object = call.context.objects.find(*key);
  if (!object) return failure(FailureKind::not_found, "there is no {}", text(*key));
  return object;
}

Outcome<Pointer> changeable_object(const Call& call) {
  auto object = named_object(call);
  if (!object) return object;
  if (!call.caller.may_create()) return refuse_viewer(call.caller);
  if (!call.caller.may_change((*object)->owner_uid, (*object)->account)) return refuse_change((*object)->key);
  if (const auto is_expected = check_version(call, **object); !is_expected)
    return tl::unexpected(is_expected.error());
  return object;
}

bool may_see_secrets(const http::Caller& caller, const Object& object) {
  if (caller.token_account() != nullptr && !caller.may_create()) return false;
  return caller.may_change(object.owner_uid, object.account);
}

bool has_owner(objects::Kind kind) { return objects::text_of(kind).is_workload || is_queued(kind); }

Outcome<void> check_kind(const Call& call, objects::Kind kind) {
  if (!has_owner(kind)) return check_operator(call, kind);
  if (!call.caller.may_create()) return refuse_viewer(call.caller);
  return {};
}

Outcome<void> check_operator(const Call& call, objects::Kind kind) {
  if (call.caller.may_operate()) return {};
  return failure(FailureKind::permission_denied, "only operators may change {}; {} is not an operator",
                 objects::text_of(kind).plural, call.caller.text());
}

}  // namespace carve::controller
