// Keeps the node's ResourceSlice on the API server up to date (rules/resource_slice.h). kubelet deletes it at each
// of its own starts and 30 s after the driver's connection has ended, so it is created again when the watch
// reports that it was deleted. An object that another program has changed is overwritten. In the steady state
// nothing is written. Everything runs in the thread of the client's loop.
#pragma once

#include <memory>
#include <optional>
#include <random>
#include <string>

#include "kubernetes/api/watched_objects.h"
#include "kubernetes/node/rules/resource_slice.h"

namespace carve::kubernetes::node {

// Minimum time between two updates. The last state wins.
inline constexpr kubernetes::Nanoseconds slice_update_pause_ns = 10 * kubernetes::second_ns;
// Minimum time between two creations, in case another program keeps deleting the object.
inline constexpr kubernetes::Nanoseconds slice_create_pause_ns = kubernetes::second_ns;

class ResourceSlicePublisher {
 public:
  ResourceSlicePublisher(kubernetes::ApiClient&, std::string node, uint64_t seed);

  // Sets the object that the API server should have. Null deletes the object.
  void want(api::Json);
  // Stops and resumes writing. At first nothing is written: while kubelet does not know the driver, it rejects the
  // pods that are scheduled, and tries again only 77 s later (kubelet 1.36.2).
  void hold();
  void release();

  uint64_t writes() const { return writes_; }  // Creations, updates and deletions, for metrics and tests.

 private:
  void check();  // Reads the object, because it may have changed.
  void step();
  void was_read(const kubernetes::ApiAnswer&);
  void create();
  void update(const api::Json& stored);
  void remove();
  void write(kubernetes::ApiRequest);
  void pause(kubernetes::Nanoseconds);
  void failed(const kubernetes::ApiAnswer&);
  std::string target() const { return std::string(resource_slices_path) + "/" + name_; }

  kubernetes::ApiClient& client_;
  const std::string name_;
  std::mt19937_64 random_;
  std::optional<api::Json> wanted_;  // No value before the first call of want().
  bool is_held_ = true;
  bool is_stale_ = true;          // The object may differ from wanted_.
  uint64_t last_generation_ = 0;  // The highest one that was seen or written.
  kubernetes::Nanoseconds updated_at_ = -slice_update_pause_ns, created_at_ = -slice_create_pause_ns;
  kubernetes::Nanoseconds retry_ns_ = kubernetes::first_retry_ns;
  std::string last_problem_;
  uint64_t writes_ = 0;
  std::unique_ptr<kubernetes::ApiCall> call_;   // Null if no request is in progress.
  std::unique_ptr<kubernetes::ApiCall> timer_;  // Null unless it waits.
  kubernetes::ObjectWatch watch_;               // Declared last, because it calls the other members.
};

}  // namespace carve::kubernetes::node
