// What a user applied, read and checked: the objects that the documents ask for. Pure: texts in, values or
// errors out.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fronts/eas/eas.h"
#include "wire/api/field_error.h"
#include "wire/objects/service_object.h"

namespace carve::controller {

inline constexpr std::string_view dialects[] = {"auto", "carve", "eas"};

struct Submission {
  objects::Service service;
  std::vector<std::string> warnings;
};

// Reads all documents of the text, in JSON or YAML. `dialect`: one of `dialects`; "auto" decides for each
// document by its fields.
Result<std::vector<Submission>, api::FieldErrors> read_submissions(std::string_view text,
                                                                   std::string_view dialect,
                                                                   const fronts::EasContext&);

}  // namespace carve::controller
