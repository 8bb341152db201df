// The parameters of a job as text, in the three forms that EMR Serverless shows for its engines
// (requirements: Spark's quoted pairs, Ray's assignments, and the SQL form of custom jobs):
//
//   'spark.driver.resource.gpu.amount': '1', # comment        quotes ' or ", the comma may be missing
//   serverless.ray.worker.gpu.amount=1; # comment             the last ; of a line may be missing
//   set serverless.custom.job.task.gpus = 1; -- comment       blanks around = may be missing
//
// The form is chosen for each parameter, so one text may have all three, several on a line. A value of the
// last two forms is kept as it is written, without the blanks around it, and after `set` without its quotes.
// In a quoted value, a \ before the quote or before another \ is removed. A comment extends to
// the end of its line. Parameters in it are a warning, and an error if they are about a GPU and the text sets none.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "wire/api/field_error.h"

namespace carve::engines {

inline constexpr size_t max_parameters_bytes = 64 << 10;
inline constexpr size_t max_parameter_key_bytes = 253;

using Parameters = std::map<std::string, std::string>;

struct ReadParameters {
  Parameters values;
  // One for each key that occurs twice, of which the last one wins, and for each comment with parameters.
  std::vector<std::string> warnings;
};

// Returns the parameters of the text, or every error with its line.
Result<ReadParameters, api::FieldErrors> read_parameters(std::string_view text);

// Returns whether it is a valid parameter name: no blank, no control character and none of = ; ' " #.
bool is_parameter_key(std::string_view);

}  // namespace carve::engines
