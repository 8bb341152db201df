// The readers of documents that need more than the reader of their rules file: those that have warnings, a
// context, or a spec of another type.
#pragma once

#include <string>

#include "controller/objects/submission.h"

namespace carve::controller {

// Return the submission, or every error of the document.
Result<Submission, api::FieldErrors> read_service(const std::string& text, const SubmissionContext&);
Result<Submission, api::FieldErrors> read_application(const std::string& text, const SubmissionContext&);
Result<Submission, api::FieldErrors> read_node(const std::string& text, const SubmissionContext&);

}  // namespace carve::controller
