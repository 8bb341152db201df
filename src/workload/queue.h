// Queues determine which waiting jobs are admitted, and in which order. All queues of one node pool share its
// free capacity, so one call of actions() decides for all of them.
//
// * The head of a queue is the waiting job with the highest priority, and among equals the one that was
//   submitted first. All slices of a job are admitted or none. While the head waits, no later job of the
//   queue overtakes it, except by backfill.
// * Backfill (an option of the queue) admits a later job that does not delay the head: it ends by its
//   deadline before the head can start, or both fit at that time. The start of the head follows from the
//   deadlines of the running jobs. If these do not determine it, no job overtakes the head.
// * Among queues the one with the lowest dominant share divided by its weight is next. The dominant share of
//   a queue is the larger of its parts of the pool's memory and compute (Ghodsi et al., NSDI 2011).
// * A queue can always reclaim its quota. A head within its queue's quota comes before all heads beyond
//   theirs. While it waits for capacity, no job beyond a quota is admitted. Other queues may use an unused
//   quota, and it becomes free as their jobs end. No job is stopped for it.
//
// Whether a job fits is decided by the argument Capacity, which the controller implements with the placement
// engine. The limits of a queue are checked before that.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/amounts.h"
#include "core/failure.h"
#include "core/pool_words.h"
#include "workload/restart.h"

namespace carve::workload {

inline constexpr size_t max_queues = 64;  // Per controller.
inline constexpr size_t max_waiting_jobs = 10'000;
inline constexpr uint32_t max_queue_weight = 1000;
inline constexpr uint32_t max_job_slices = 1024;

// Memory and compute. 10,000 basis points are the compute of one device.
struct Amount {
  Bytes memory;
  uint64_t compute_bp = 0;

  friend bool operator==(const Amount&, const Amount&) = default;
};

struct Queue {
  std::string name;
  QueueGpu gpu = QueueGpu::mgpu;
  std::optional<Amount> quota;
  uint32_t weight = 1;
  uint32_t max_running = 0;  // Maximum number of running jobs; 0 means no limit.
  uint32_t max_slices = 0;   // Over all its running jobs; 0 means no limit.
  bool backfill = false;
};

// Returns the queue, or the first rule that it violates (invalid_argument).
Outcome<Queue> validated(Queue);

// Equal slices of one job.
struct SliceGroup {
  uint32_t slices = 0;
  Amounts amounts;  // Amounts of each slice, without memory units.

  friend bool operator==(const SliceGroup&, const SliceGroup&) = default;
};

// The resources that a job needs.
struct JobNeed {
  std::vector<SliceGroup> groups;  // Empty if the job requests no GPU. A Ray cluster may have several.
  Bytes device_memory;             // Usable memory of the pool's largest device; 0 if unknown.
  Ns deadline = 0;                 // Longest time from its admission to its end; 0 means no limit.
};

// Returns the kind of queue that the job needs.
QueueGpu gpu_of(const JobNeed&);

// Returns the memory and compute that a slice takes of its device with this index, for its queue's quota. A
// whole device and a part of one are counted as if the device had `device_memory`.
Amount amount_on(const Amounts&, uint32_t device, Bytes device_memory);

// Returns the amount that a slice of the first group takes of its first device; zero if the job requests no
// GPU.
Amount first_amount(const JobNeed&);

// Returns the index of a slice of a group. The groups take turns, so a slice keeps its index if a group grows
// or shrinks.
uint32_t slice_index(const JobNeed&, uint32_t group, uint32_t place_in_group);

// Returns the amounts of the slice with this index. The job has a group.
const Amounts& amounts_of_slice(const JobNeed&, uint32_t index);

// Returns the number of slices of each group.
std::vector<uint32_t> group_counts(const JobNeed&);

// Returns the need with these numbers of slices, without empty groups. At least one number must not be 0.
JobNeed with_counts(const JobNeed&, const std::vector<uint32_t>& counts);

// Returns the number of all slices.
uint64_t slice_count(const JobNeed&);

struct WaitingJob {
  uint64_t id = 0;  // Ascending in the order of submission.
  std::string queue;
  int32_t priority = 0;  // A higher number comes first.
  JobNeed need;
  bool is_held = false;    // The budget of its account is used up (`then: hold`).
  bool is_growth = false;  // More slices for a running job. They do not count as another job of its queue.
};

struct RunningJob {
  uint64_t id = 0;
  std::string queue;
  JobNeed need;
  Ns admitted_at = 0;
};

// Fails if the queue can never admit the job (invalid_argument), or if it accepts no job now because
// max_waiting_jobs are already waiting (insufficient_capacity). Any queue may have jobs without a GPU.
Outcome<void> check(const Queue&, const JobNeed&, size_t waiting);

// The free capacity of a pool, and the capacity that running jobs hold.
class Capacity {
 public:
  virtual ~Capacity() = default;

  // Takes capacity for all slices of the job, or returns false and takes nothing.
  virtual bool take(uint64_t job, const JobNeed&) = 0;

  // Takes the capacity that the job has in `other`, on the same devices. Returns false and takes nothing if
  // that is not possible.
  virtual bool take_same(uint64_t job, const Capacity& other) = 0;

  // Releases the job's capacity.
  virtual void release(uint64_t job) = 0;

  virtual std::unique_ptr<Capacity> copy() const = 0;
};

struct QueueAction {
  enum class Kind : uint8_t { admit, refuse };
  enum class Reason : uint8_t {
    head,      // The head of its queue fits.
    backfill,  // The job does not delay the head.
    limits,    // The queue can never admit the job (check()).
  };
  Kind kind;
  uint64_t job = 0;
  Reason reason = Reason::head;
  std::string message = {};  // Set for a rejection.

  friend bool operator==(const QueueAction&, const QueueAction&) = default;
};

enum class WaitReason : uint8_t {
  capacity,     // The job is the head and does not fit now.
  quota,        // The job is the head, but beyond its quota, and another head waits within its quota.
  max_running,  // The job is the head, and its queue already runs the maximum number of jobs.
  max_slices,   // The job is the head, and its queue already has the maximum number of slices.
  behind_head,
  budget,  // The account is held. The job keeps its place in the queue but blocks no other job.
};

struct WaitingPosition {
  uint64_t job = 0;
  uint32_t position = 0;  // Position in its queue, from 1.
  WaitReason reason = WaitReason::behind_head;

  friend bool operator==(const WaitingPosition&, const WaitingPosition&) = default;
};

struct QueueDecision {
  std::vector<QueueAction> actions;
  std::vector<WaitingPosition> waiting;  // Ordered by queue, then by position.
};

// Decides for the queues of one pool, whose devices have `total` resources. The queues must have been
// validated. Jobs of other queues are ignored. The capacity of admitted jobs is taken from `free`.
QueueDecision decide(std::span<const Queue>, std::span<const WaitingJob>, std::span<const RunningJob>,
                     const Amount& total, Capacity& free, Ns now);

// Returns decide()'s actions: first the rejections, then the admissions in order.
std::vector<QueueAction> actions(std::span<const Queue>, std::span<const WaitingJob>,
                                 std::span<const RunningJob>, const Amount& total, Capacity& free, Ns now);

}  // namespace carve::workload
