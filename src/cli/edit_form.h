// The form in which `carve edit` and `carve diff` show an object, and what a user has changed in it. All
// functions are pure.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "wire/api/json.h"

namespace carve::cli {

// Returns the part of the object that users write: without the status and without the fields of the metadata
// that the controller sets.
api::Json user_form(api::Json object);

// Returns the merge patch (RFC 7396) that changes `before` into `after`: an empty object if they are equal. A
// list with any change is replaced as a whole.
api::Json merge_patch(const api::Json& before, const api::Json& after);

// Returns the text for the editor: a comment with instructions and the problem of the previous attempt (empty
// for the first one), then the document.
std::string editor_text(const std::string& object, std::string_view problem, std::string_view document);
// Returns the text without the comment lines at its top.
std::string_view without_comment(std::string_view text);

// Returns the document that the user wrote, or why it cannot be read.
Result<api::Json, std::string> edited_document(std::string_view text);

}  // namespace carve::cli
