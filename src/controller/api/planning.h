// Plans the changes that a caller's documents would make to the objects: who owns a new object, who may
// change one, and what else forbids the change. Nothing is changed before every document has passed.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "controller/api/api_call.h"
#include "controller/objects/submission.h"

namespace carve::controller {

// Returns the context that documents do not contain: a pool's instance types, its largest device, its type.
SubmissionContext submission_context(const Call&);

// Parses documents, or rejects them. Large ones are parsed in a thread: the response then comes later, from a
// second call of the route.
Result<std::vector<Submission>, http::Response> submissions_of(const Call&, const std::string& text,
                                                               const std::string& dialect);

// Parses the documents of the request's body, in the dialect of the query, or rejects them.
Result<std::vector<Submission>, http::Response> posted_submissions(
    const Call&, const std::map<std::string, std::string>& query);

// The owner of an object that a caller creates: the user whose rights its programs have, and the account that
// pays.
struct Owner {
  uint32_t uid;
  std::string account;
};
// The account that a document names, and the field that names it.
struct AccountField {
  const char* field = "metadata.account";
  std::string account = {};  // Empty for the caller's own.
};
Outcome<Owner> owner_of(const Call&, const AccountField&);
// Rejects an object if its owner's programs could not be started.
Outcome<void> check_start(const Call&, uint32_t owner_uid);

// Returns the key of the object that the path names. The namespace comes from the query, which may have no
// other parameter.
Outcome<ObjectKey> key_of(const Call&);
// Returns the object that the path names.
Outcome<ObjectRegistry::Pointer> named_object(const Call&);
// Returns the object that the path names if the caller may change it and knows its current version.
Outcome<ObjectRegistry::Pointer> changeable_object(const Call&);

// Returns nothing if the object has the version in the If-Match header, otherwise stale. Without the header
// every version matches.
Outcome<void> check_version(const Call&, const Object&);
// Returns nothing if the caller may change the object, otherwise why not.
Outcome<void> check_change(const Call&, const Object&);
// Returns nothing if the document names the account that pays for the object, or no account.
Outcome<void> check_account(const Object& present, const objects::Metadata& wanted);

// Returns nothing if the caller is an operator. Only operators may change pools, queues, tariffs and budgets.
Outcome<void> check_operator(const Call&, objects::Kind);
// Returns the object of one of these kinds after the submission: the current object with the requested
// values, or a new one.
Outcome<Object> operators_object(const Call&, const Submission&);

// Returns whether the caller may see the object's environment and logs.
bool may_see_secrets(const http::Caller&, const Object&);

// Returns the warnings for an accepted submission: about its document, and about limits that this machine
// does not enforce.
std::vector<std::string> warnings_of(const Call&, const Submission&);

// Returns the service or application that the submission would make, or why it is rejected.
Outcome<Object> planned_workload(const Call&, const Submission&);

struct Kept {
  ObjectRegistry::Pointer object;
  const char* action;  // "created", "configured", "unchanged"
};
// Returns nothing if keep() would keep the planned objects, otherwise why not.
Outcome<void> check_keep(const Call&, const std::vector<Object>&);
// Keeps all planned objects, or none.
Outcome<std::vector<Kept>> keep(const Call&, const std::vector<Object>&);

}  // namespace carve::controller
