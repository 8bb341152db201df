#include "node/api/audit_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include "os/directory.h"
#include "os/log.h"
#include "os/process.h"

namespace carve::node {
namespace {

os::Fd open_for_appending(const std::string& path) {
  return os::Fd(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
}

}  // namespace

AuditLog::AuditLog(std::string path) : path_(std::move(path)) {
  if (path_.empty()) return;
  const std::string stored = os::read_file(path_, 2 * max_file_bytes).value_or("");
  for (size_t at = 0; at < stored.size();) {
    const size_t end = std::min(stored.find('\n', at), stored.size());
    if (auto entry = api::read<api::AuditEntry>(stored.substr(at, end - at), api::Reading::lenient))
      keep(std::move(*entry));
    at = end + 1;
  }
  rewrite();  // The last line may be incomplete.
}

void AuditLog::keep(api::AuditEntry entry) {
  ++of_caller_[entry.caller];
  entries_.push_back(std::move(entry));
  if (entries_.size() <= max_entries) return;
  const auto most = std::ranges::max_element(of_caller_, {}, [](const auto& row) { return row.second; });
  entries_.erase(std::ranges::find(entries_, most->first, &api::AuditEntry::caller));
  if (--most->second == 0) of_caller_.erase(most);
}

void AuditLog::add(api::AuditEntry entry) {
  if (entry.message.size() > max_message_bytes) entry.message.resize(max_message_bytes);
  const std::string line = api::write(entry) + "\n";
  keep(std::move(entry));
  if (path_.empty()) return;
  if (file_bytes_ + line.size() > max_file_bytes) return rewrite();
  if (write(file_.get(), line.data(), line.size()) == static_cast<ssize_t>(line.size()))
    file_bytes_ += line.size();
  else
    rewrite();
}

void AuditLog::rewrite() {
  std::string text;
  for (const api::AuditEntry& entry : entries_) text += api::write(entry) + "\n";
  if (const auto kept = os::replace_unsynced_file(path_, text); !kept)
    os::log::error("{}; the audit log is kept only in memory", kept.error().message);
  file_ = open_for_appending(path_);
  file_bytes_ = text.size();
}

}  // namespace carve::node
