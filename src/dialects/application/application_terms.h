// Applications: their documents, their rules, and the services that run them. Amounts of a GPU are per
// replica; with multiDevice they are divided equally over its devices.
//
//   | gpu.type | memory               | compute                                  | devices         |
//   |----------|----------------------|------------------------------------------|-----------------|
//   | none     | -                    | -                                        | -               |
//   | mGPU     | more than 256 MiB    | 0.01 to 0.99, or 1                       | absent or 1     |
//   | mGPU, multiDevice | more than 1024 MiB | 0.01 to 0.99, or 1 to devices     | 2 to 16         |
//   | GPU      | -                    | -                                        | 1 to 16         |
//
// Under the policy native-burst-share the compute may be absent. Policies also have Volcengine's names.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "objects/application.h"
#include "wire/api/json.h"

namespace carve::dialects {

inline constexpr uint64_t min_single_device_mib = 256;  // Exclusive.
inline constexpr uint64_t min_multi_device_mib = 1024;  // Exclusive.

// Context that is not in the document: the pool named by spec.pool.
struct ApplicationContext {
  bool is_elastic_pool = false;  // The pool's type is vci.
};

struct ApplicationService {
  objects::ServiceSpec spec;
  std::vector<std::string> warnings;
};

// Parses the JSON text of an application strictly. spec.gpu.compute and spec.gpu.memory may also be numbers,
// whose digits are kept: 0.30 becomes the text "0.30". If there are errors, also returns the part that could
// be parsed, so that it can be checked.
api::PartlyRead<objects::Application> read_application(std::string_view json);

// Returns the spec of the service that runs the application. Fails with every error of the application.
Result<ApplicationService, api::FieldErrors> service_of(const objects::Application&,
                                                        const ApplicationContext&);

}  // namespace carve::dialects
