// A node of the cluster whose usage records can be read.
#pragma once

#include <string>

#include "controller/billing/ledger_copy.h"
#include "core/failure.h"
#include "kubernetes/api/answers.h"
#include "kubernetes/format/node_reader.h"

namespace carve::controller {

struct ClusterNode {
  std::string name;
  std::string uid;  // Of its Node object.
  kubernetes::NodeReader reader;

  friend bool operator==(const ClusterNode&, const ClusterNode&) = default;
};

// Returns the node that its object describes. Fails if the annotation carve.dev/reader is missing or invalid.
Outcome<ClusterNode> read_cluster_node(const kubernetes::ObjectMeta&);

// The store of the usage records, which belongs to another thread. Each call calls back later, in the
// caller's thread.
class UsageBooks {
 public:
  virtual ~UsageBooks() = default;
  virtual void find_position(const std::string& node, std::function<void(Outcome<CopyPosition>)>) = 0;
  // Stores the write in one transaction.
  virtual void write(const std::string& node, CopyWrite, std::function<void(Outcome<void>)>) = 0;
};

}  // namespace carve::controller
