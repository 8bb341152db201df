// Views of the cache's contents, for checks, settings, metrics and the binder. Lists are sorted.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "kubernetes/coordinator/cache/cache.h"

namespace carve::kubernetes::coordinator {

// Returns the names of all nodes in no particular order. They are valid until the cache changes.
std::vector<std::string_view> node_names(const Cache&);

// Returns the reason why each unreadable object cannot be read, by "node NAME" or "pod NAMESPACE/NAME".
std::map<std::string, std::string> unreadable_objects(const Cache&);

// Returns how much of each device of the node is in use. Empty if the node is unknown or unreadable.
std::vector<fleet::DeviceUse> device_uses(const Cache&, const std::string& node);
// Returns the models of all devices.
std::vector<std::string> device_models(const Cache&);

// Returns the pods that request memory in units, as NAMESPACE/NAME, by the unit's size in bytes.
std::map<uint64_t, std::vector<std::string>> pods_in_units(const Cache&);

// Returns the uids of the pods whose reservations no object confirms yet.
std::vector<std::string> unconfirmed_pods(const Cache&);
bool is_unconfirmed(const Cache&, const std::string& uid);
// Returns the uids of pods that wait for a node and are not being deleted.
std::vector<std::string> waiting_pods(const Cache&);

// Returns NAMESPACE/NAME of the pod; empty if the pod is not cached.
std::string full_name_of(const Cache&, const std::string& uid);
// Returns the uid of the pod NAMESPACE/NAME; empty if the pod is not cached.
std::string uid_of(const Cache&, std::string_view full_name);

}  // namespace carve::kubernetes::coordinator
