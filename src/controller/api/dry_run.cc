#include "controller/api/dry_run.h"

#include <algorithm>

#include "controller/objects/service_form.h"
#include "dialects/explain/translation.h"
#include "wire/api/json.h"
#include "yaml/documents.h"

namespace carve::controller {
namespace {

// A workload of which the replicas [first, end) are new.
struct NewReplicas {
  uint32_t first = 0, end = 0;
};

NewReplicas new_replicas(const objects::ServiceSpec& form, const ObjectRegistry::Pointer& present) {
  if (form.stopped) return {};
  if (!present) return {0, form.replicas};
  const objects::ServiceSpec before = service_form(*present);
  if (before.stopped) return {0, form.replicas};
  if (revision_spec(before) != revision_spec(form))
    return {0, std::min(form.replicas, std::max(form.update.max_surge, 1U))};
  return {std::min(before.replicas, form.replicas), form.replicas};
}

}  // namespace

std::vector<api::ReplicaPlacement> forecast_replicas(SliceForecast& forecast, const Object& planned,
                                                     const ObjectRegistry::Pointer& present) {
  std::vector<api::ReplicaPlacement> out;
  const objects::ServiceSpec form = service_form(planned);
  const auto request = slice_terms(form);
  if (!request) return out;
  const NewReplicas added = new_replicas(form, present);
  for (uint32_t replica = added.first; replica < added.end; ++replica) {
    api::ReplicaPlacement& row = out.emplace_back();
    row.replica = replica;
    const auto place = forecast.place(node_choice(form), *request, host_request(form));
    if (place) {
      row.node = place->node;
      row.devices = place->devices;
      for (const Bytes memory : place->memory) row.memory_bytes.push_back(memory.count);
    } else {
      row.message = place.error().message;
    }
  }
  return out;
}

std::vector<api::TranslatedField> translation_of(const Submission& submission) {
  const objects::Source& source = submission.form.source;
  const bool is_application = submission.kind == objects::Kind::application;
  const std::string_view ours = is_application ? "application" : "service";
  const std::string document = source.dialect.empty()
                                   ? fmt::format(R"({{"spec":{}}})", submission.spec.json())
                                   : yaml::json_of(source.document);
  return dialects::translation_of(
      {.dialect = source.dialect.empty() ? ours : std::string_view(source.dialect),
       .source = document,
       .metadata = submission.metadata,
       .spec = submission.form});
}

}  // namespace carve::controller
