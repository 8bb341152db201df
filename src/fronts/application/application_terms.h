// Applications: their documents, their rules, and the service that each one runs as. Amounts of a GPU are
// those of a replica; with multiDevice they are divided equally over its devices.
//
//   | gpu.type | memory               | compute                                  | devices         |
//   |----------|----------------------|------------------------------------------|-----------------|
//   | none     | -                    | -                                        | -               |
//   | mGPU     | more than 256 MiB    | 0.01 to 0.99, or 1                       | absent or 1     |
//   | mGPU, multiDevice | more than 1024 MiB | 0.01 to 0.99, or 1 to devices     | 2 to 16         |
//   | GPU      | -                    | -                                        | 1 to 16         |
//
// Under the policy native-burst-share the compute may be absent. Policies have Volcengine's names too.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "wire/api/json.h"
#include "wire/objects/application.h"

namespace carve::fronts {

inline constexpr uint64_t min_single_device_mib = 256;  // More than this.
inline constexpr uint64_t min_multi_device_mib = 1024;  // More than this.

// What the document does not say: the pool that spec.pool names.
struct ApplicationContext {
  bool is_elastic_pool = false;  // Of type vci.
};

struct ApplicationService {
  objects::ServiceSpec spec;
  std::vector<std::string> warnings;
};

// Reads the JSON text of an application, strictly. spec.gpu.compute and spec.gpu.memory may be numbers too,
// of which the digits are kept: 0.30 is the text "0.30". What could be read may be checked beside the errors.
api::PartlyRead<objects::Application> read_application(std::string_view json);

// Returns the spec of the service that the application runs as, or every error of the application.
Result<ApplicationService, api::FieldErrors> service_of(const objects::Application&,
                                                        const ApplicationContext&);

}  // namespace carve::fronts
