// The registry of the live slices, by the id of the usage record, by name and by process.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "node/slice/live_slice.h"

namespace carve::node {

class Slices {
 public:
  LiveSlice& add(std::unique_ptr<LiveSlice>);
  void erase(uint64_t id);

  LiveSlice* find(uint64_t id) const;  // Null if there is no such live slice.
  LiveSlice* find(const std::string& name) const;
  LiveSlice* find(const AttachPoint&) const;  // The slice whose containers attach there, or null.
  // Returns how many slices of claims the pod with this uid may use.
  size_t claims_of(const std::string& pod_uid) const;
  // Returns the slice to which the process is attached, or null.
  LiveSlice* attached_slice(const os::ProcessId&) const;
  // Returns the slice in which the process runs, or null. A process stays in the slice in which it first
  // attached.
  LiveSlice* slice_of(pid_t pid, const World& world = {}) const;

  // Iterates in the order of the grants.
  auto begin() const { return by_id_.begin(); }
  auto end() const { return by_id_.end(); }
  size_t size() const { return by_id_.size(); }

 private:
  std::map<uint64_t, std::unique_ptr<LiveSlice>> by_id_;
};

}  // namespace carve::node
