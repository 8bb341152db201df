#include "tenant/linkage/hook.h"
namespace carve::tenant {
const Table nvml_table = {Api::nvml, {}, {}};
}
