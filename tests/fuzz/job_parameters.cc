// Any bytes as the parameters of a job yield parameters or errors. Parsed parameters can be parsed again from
// the form of quoted pairs, with the same values, and every engine converts them to pods or reports errors.
#include <cstdint>
#include <cstdlib>

#include "engines/engine_pods.h"
#include "engines/parameters.h"

namespace {

std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + "'";
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace carve;
  const auto read = engines::read_parameters({reinterpret_cast<const char*>(data), size});
  if (!read) {
    if (read.error().empty() || read.error().size() > api::max_field_errors) std::abort();
    return 0;
  }
  std::string again;
  for (const auto& [key, value] : read->values) again += quoted(key) + ": " + quoted(value) + ",\n";
  if (again.size() <= engines::max_parameters_bytes) {
    const auto same = engines::read_parameters(again);
    if (!same || same->values != read->values || !same->warnings.empty()) std::abort();
  }
  for (const JobEngine engine : {JobEngine::spark, JobEngine::ray, JobEngine::custom})
    for (const QueueGpu gpu : {QueueGpu::none, QueueGpu::gpu, QueueGpu::mgpu}) {
      const auto pods = engines::engine_pods(
          {.engine = engine, .parameters = read->values, .queue = {.name = "q", .gpu = gpu}});
      if (!pods && (pods.error().empty() || pods.error().size() > api::max_field_errors)) std::abort();
    }
  return 0;
}
