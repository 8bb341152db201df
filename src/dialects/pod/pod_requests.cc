#include "dialects/pod/pod_requests.h"

#include "dialects/pod/dialects.h"
#include "dialects/pod/keys.h"

namespace carve::dialects {
namespace {

// Returns the first limit of the container that belongs to the dialect.
JsonMember first_limit(ContainerReader& reader, const DialectRow& row) {
  for (const char* key : row.limits)
    if (reader.has_limit(key)) return reader.limit(key);
  return {};
}

}  // namespace

void read_container_request(ContainerReader& reader, PodRequests& out) {
  refuse_unknown_limits(reader);
  const DialectRow* const row = dialect_of(reader);
  if (row == nullptr) {
    if (reader.has_limit(keys::slot))
      reader.refuse(reader.limit(keys::slot), "container {}: {} is set by Carve; request {} or {} instead",
                    reader.container().name, keys::slot, keys::memory, keys::devices);
    return;
  }
  if (row->dialect == Dialect::nvidia && !reader.settings().plain_nvidia_is_whole) return;
  const JsonMember limit = first_limit(reader, *row);
  if (row->dialect != Dialect::nvidia && !reader.settings().dialects.contains(row->dialect))
    return reader.refuse(limit, "{}: dialect {} is disabled in carve-settings",
                         limit.path.substr(reader.container().limits.path.size() + 1), text(row->dialect));
  if (out.dialect && *out.dialect != row->dialect)
    return reader.refuse(limit,
                         "container {} uses dialect {}, but another container uses {}; use only one dialect",
                         reader.container().name, text(row->dialect), text(*out.dialect));
  out.dialect = row->dialect;
  if (row->dialect == Dialect::ack && !out.containers.empty() && reader.label(keys::ack_count))
    return reader.refuse(
        limit,
        "{} may be used only if one container of the pod requests a slice; container {} also requests one",
        keys::ack_count, reader.container().name);
  auto request = row->read(reader);
  if (!request) return;
  read_slice_annotations(reader, *request);
  out.containers[reader.container().index] = std::move(*request);
}

}  // namespace carve::dialects
