// What a caller's documents would make of the objects: who owns a new one, who may change one, and what else
// forbids it. Nothing is changed before every document has passed.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "controller/api/api_call.h"
#include "controller/objects/submission.h"

namespace carve::controller {

// Returns what documents do not say: the instance types of a pool, its largest device, its type.
SubmissionContext submission_context(const Call&);

// Reads documents, or refuses them. Large ones are read in a thread: the response then comes later, from the
// route that is asked again.
Result<std::vector<Submission>, http::Response> submissions_of(const Call&, const std::string& text,
                                                               const std::string& dialect);

// Reads the documents of the request's body, in the dialect of the query, or refuses them.
Result<std::vector<Submission>, http::Response> posted_submissions(
    const Call&, const std::map<std::string, std::string>& query);

// Who owns what a caller creates: the user whose rights its programs have, and who pays.
struct Owner {
  uint32_t uid;
  std::string account;
};
// The account that a document names, and the field in which it does.
struct AccountField {
  const char* field = "metadata.account";
  std::string account = {};  // Empty: the caller's own.
};
Outcome<Owner> owner_of(const Call&, const AccountField&);

// Returns the key of the object that the path names. Its namespace is that of the query, which may have
// nothing else.
Outcome<ObjectKey> key_of(const Call&);
// Returns the object that the path names.
Outcome<ObjectRegistry::Pointer> named_object(const Call&);
// Returns the object that the path names if the caller may change it and has seen its present version.
Outcome<ObjectRegistry::Pointer> changeable_object(const Call&);

// Returns nothing if the object has the version that the header If-Match names, or stale. Without the header
// every version is right.
Outcome<void> check_version(const Call&, const Object&);
// Returns nothing if the caller may change the object, or why not.
Outcome<void> check_change(const Call&, const Object&);
// Returns nothing if the document names the account that pays for the object, or none.
Outcome<void> check_account(const Object& present, const objects::Metadata& wanted);

// Pools, queues, tariffs and budgets are changed by operators. Returns nothing if the caller is one.
Outcome<void> check_operator(const Call&, objects::Kind);
// Returns the submission's object of these kinds: the present one with what is asked for, or a new one.
Outcome<Object> operators_object(const Call&, const Submission&, const std::string& first_status);

// Returns whether the caller sees the object's environment and logs.
bool may_see_secrets(const http::Caller&, const Object&);

// Returns what the user is told of the submission although it is kept: of its document, and of limits that
// this machine does not enforce.
std::vector<std::string> warnings_of(const Call&, const Submission&);

// Returns the object that the submission would make, or what forbids it.
Outcome<Object> planned(const Call&, const Submission&);

struct Kept {
  ObjectRegistry::Pointer object;
  const char* action;  // "created", "configured", "unchanged"
};
// Returns nothing if keep() would keep the planned objects, or why not.
Outcome<void> check_keep(const Call&, const std::vector<Object>&);
// Keeps all planned objects, or none.
Outcome<std::vector<Kept>> keep(const Call&, const std::vector<Object>&);

}  // namespace carve::controller
