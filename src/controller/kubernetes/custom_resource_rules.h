// Parts of a custom resource's definition that are not in the schema of its fields: columns of `kubectl get`,
// limits of fields, and rules in CEL. The rules repeat those of src/objects/rules as far as a schema or
// CEL can express them, with the same limits and, in CEL, the same messages. The controller checks every
// object with its reader as well, so a rule that is missing here is reported in the object's status.
#pragma once

#include <string>
#include <vector>

#include "objects/kind.h"

namespace carve::controller {

struct PrinterColumn {
  const char* name;
  const char* type;  // "string", "integer", "date"
  const char* path;  // JSONPath.
  bool is_wide = false;
};

// Members that are merged into the schema of a field.
struct FieldLimit {
  std::string path;     // "spec.tolerations[].operator"
  std::string members;  // JSON: {"maximum":64}
};

struct CelRule {
  std::string path;  // The field whose value is `self`.
  std::string rule;
  std::string message;
  std::string field = {};  // The field that the error names, relative to `path`: ".memory". Empty for `path`.
};

struct CustomResourceRules {
  std::vector<PrinterColumn> columns;
  std::vector<FieldLimit> limits;
  std::vector<CelRule> rules;
};

CustomResourceRules custom_resource_rules(objects::Kind);

}  // namespace carve::controller
