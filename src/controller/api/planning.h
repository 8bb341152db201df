// Plans the changes that a caller's documents would make to the objects: who owns a new object, who may
// change an existing one, and what else prevents the change. Nothing is changed until every document has
// passed.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "controller/api/api_call.h"
#include "controller/objects/submission.h"

namespace carve::controller {

// Returns the context that is not in the documents: a pool's instance types, its largest device and its type.
SubmissionContext submission_context(const Call&);

// Parses documents, or rejects them. Large ones are parsed in a thread; the response is then sent later, by a
// second call of the route.
Result<std::vector<Submission>, http::Response> submissions_of(const Call&, const std::string& text,
                                                               const std::string& dialect);

// Parses the documents in the request's body in the dialect that the query names, or rejects them.
Result<std::vector<Submission>, http::Response> posted_submissions(
    const Call&, const std::map<std::string, std::string>& query);

// The owner of an object that a caller creates: the user whose rights its programs have, and the account that
// pays.
struct Owner {
  uint32_t uid;
  std::string account;
};
// The account in a document, and the name of the field that contains it.
struct AccountField {
  const char* field = "metadata.account";
  std::string account = {};  // Empty for the caller's own account.
};
Outcome<Owner> owner_of(const Call&, const AccountField&);
// Rejects an object if its owner's programs could not be started.
Outcome<void> check_start(const Call&, uint32_t owner_uid);

// Returns the key of the object that the path names. Its namespace comes from the query, which may have no
// other parameter.
Outcome<ObjectKey> key_of(const Call&);
// Returns the object that the path names.
Outcome<ObjectRegistry::Pointer> named_object(const Call&);
// Returns the object that the path names if the caller may change it and knows its current version.
Outcome<ObjectRegistry::Pointer> changeable_object(const Call&);

// Succeeds if the object has the version in the If-Match header or there is no such header; otherwise fails
// as stale.
Outcome<void> check_version(const Call&, const Object&);
// Succeeds if the caller may change the object.
Outcome<void> check_change(const Call&, const Object&);
// Succeeds if the document names no account or the account that pays for the object.
Outcome<void> check_account(const Object& present, const objects::Metadata& wanted);

// Returns whether objects of the kind belong to the user who created them. Operators change the other kinds.
bool has_owner(objects::Kind);
// Succeeds if the caller may create objects of the kind and change those that it owns.
Outcome<void> check_kind(const Call&, objects::Kind);
// Succeeds if the caller is an operator. Only operators may change pools, queues, tariffs and budgets.
Outcome<void> check_operator(const Call&, objects::Kind);
// Returns the object that the submission of one of these kinds would create or change.
Outcome<Object> operators_object(const Call&, const Submission&);

// Returns whether the caller may see the object's environment and logs.
bool may_see_secrets(const http::Caller&, const Object&);

// Returns the warnings for an accepted submission, about its document and about limits that this machine does
// not enforce.
std::vector<std::string> warnings_of(const Call&, const Submission&);

// Returns the service or application that the submission would create or change, or why it is rejected.
Outcome<Object> planned_workload(const Call&, const Submission&);

struct Kept {
  ObjectRegistry::Pointer object;
  const char* action;  // "created", "configured", "unchanged"
};
// Succeeds if keep() would store the planned objects.
Outcome<void> check_keep(const Call&, const std::vector<Object>&);
// Stores all planned objects or none.
Outcome<std::vector<Kept>> keep(const Call&, const std::vector<Object>&);

}  // namespace carve::controller
