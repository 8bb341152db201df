// The parameters of a job as text, in the three forms that EMR Serverless shows for its engines
// (requirements: Spark's quoted pairs, Ray's assignments, and the SQL form of custom jobs):
//
//   'spark.driver.resource.gpu.amount': '1', # comment        quotes ' or ", the comma may be missing
//   serverless.ray.worker.gpu.amount=1; # comment             the last ; of a line may be missing
//   set serverless.custom.job.task.gpus = 1; -- comment       blanks around = may be missing
//
// Each parameter may have any form, so a text may mix all three, also on one line. A value of the last two
// forms is kept as it is written, without surrounding blanks, and after `set` without its quotes. In a quoted
// value, a \ before the quote or before another \ is removed. A comment extends to the end of its line.
// Parameters in comments cause a warning, or an error if they concern a GPU and the text sets no parameter
// for one.
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
  // One for each key that occurs more than once, of which the last value is used, and one for each comment
  // with parameters.
  std::vector<std::string> warnings;
};

// Returns the parameters of the text. Fails with every error and its line.
Result<ReadParameters, api::FieldErrors> read_parameters(std::string_view text);

// Returns whether the text is a valid parameter name: no blank, no control character and none of = ; ' " #.
bool is_parameter_key(std::string_view);

}  // namespace carve::engines
