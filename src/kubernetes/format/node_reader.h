// Annotation carve.dev/reader of a node: where carve-kubelet serves the agent's usage records, and the public
// key of its certificate. Only the node's own agent may write it (policy carve-nodes), so a program that reads
// the records can verify that it is connected to this node. One line of JSON:
//
//   {"v":1,"address":"10.0.0.7:9472","key":"sha256//f/GMVdrYUUHWFEsK2jCvHwPCeQcSRGXhRQv1QrlzF6I="}
#pragma once

#include <string>

#include "kubernetes/format/annotation.h"

namespace carve::kubernetes {

inline constexpr const char* reader_annotation = "carve.dev/reader";
inline constexpr uint32_t reader_version = 1;

struct NodeReader {
  uint32_t v = reader_version;
  std::string address;  // Numeric address and port: "10.0.0.7:9472", "[fd00::7]:9472".
  std::string key;      // tls::key_pin() of its certificate.

  friend bool operator==(const NodeReader&, const NodeReader&) = default;
};

inline Result<NodeReader, std::string> read_reader(std::string_view text) {
  return read_annotation<NodeReader>(reader_annotation, text, reader_version);
}

// Returns the audience of tokens for the usage records of a node. Each node has its own, so a token that a
// node receives is of no use at another one.
inline std::string usage_audience(const std::string& node) { return "carve.dev/usage/" + node; }

}  // namespace carve::kubernetes
