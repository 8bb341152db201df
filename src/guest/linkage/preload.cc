#include "guest/linkage/artefact.h"

namespace carve::guest {
namespace {
constexpr const Table* both[] = {&cuda_table, &nvml_table};
}

constinit const Artefact artefact = {
    shm::Guest::preload, {"libcuda.so.1", "libnvidia-ml.so.1"}, shm::default_socket, true, both};

}  // namespace carve::guest
