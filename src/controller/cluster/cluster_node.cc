#include "controller/cluster/cluster_node.h"

#include "os/tcp.h"
#include "tls/certificates/certificate.h"

namespace carve::controller {

Outcome<ClusterNode> read_cluster_node(const kubernetes::ObjectMeta& meta) {
  const auto text = meta.annotations.find(kubernetes::reader_annotation);
  if (text == meta.annotations.end())
    return failure(FailureKind::not_found, "it has no annotation {}", kubernetes::reader_annotation);
  auto reader = kubernetes::read_reader(text->second);
  if (!reader) return failure(FailureKind::invalid_argument, "{}", reader.error());
  const auto address = os::parse_tcp_address(reader->address);
  if (!address || address->port == 0)
    return failure(FailureKind::invalid_argument, "{}: address '{}' is not a numeric address and a port",
                   kubernetes::reader_annotation, reader->address.substr(0, 64));
  if (!tls::is_key_pin(reader->key))
    return failure(FailureKind::invalid_argument, "{}: key '{}' is not sha256//BASE64",
                   kubernetes::reader_annotation, reader->key.substr(0, 64));
  return ClusterNode{.name = meta.name, .uid = meta.uid, .reader = std::move(*reader)};
}

}  // namespace carve::controller
