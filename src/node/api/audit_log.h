// The newest 1,000 requests that changed something on this node, or attempted to. They are stored in STATE/audit.jsonl,
// one document a line, and survive a restart. Beyond the limit, the oldest entry of the caller with the most entries is
// dropped, so that one user's requests do not displace those of others.
//
// Used only on the agent's loop. An entry is appended without waiting for the disk, so a power loss may lose the newest
// entries; a kill of the agent loses none.
#pragma once

#include <deque>
#include <map>
#include <string>

#include "os/fd.h"
#include "wire/api/audit.h"

namespace carve::node {

class AuditLog {
 public:
  static constexpr size_t max_entries = 1000;
  static constexpr size_t max_message_bytes = 500;
  static constexpr size_t max_file_bytes = 2 << 20;

  // Reads the stored entries. Lines that cannot be read are skipped. An empty path keeps the entries only in memory.
  explicit AuditLog(std::string path = "");

  void add(api::AuditEntry);
  const std::deque<api::AuditEntry>& entries() const { return entries_; }  // Oldest first.

 private:
  void keep(api::AuditEntry);
  void rewrite();

  std::string path_;
  std::deque<api::AuditEntry> entries_;
  std::map<std::string, size_t> of_caller_;  // Number of entries.
  os::Fd file_;
  size_t file_bytes_ = 0;
};

}  // namespace carve::node
