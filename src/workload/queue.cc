#include "workload/queue.h"

#include <algorithm>

#include "core/invariant.h"

namespace carve::workload {
namespace {

using Wide = unsigned __int128;

// A queue's current usage. 128 bits are sufficient for any sum over validated jobs.
struct QueueUse {
  Wide memory = 0;
  Wide compute_bp = 0;
  uint64_t slices = 0;
  uint64_t jobs = 0;

  void add(const JobNeed& need) {
    for (const SliceGroup& group : need.groups)
      for (uint32_t device = 0; device < group.amounts.device_count(); ++device) {
        const Amount amount = amount_on(group.amounts, device, need.device_memory);
        memory += Wide{group.slices} * amount.memory.count;
        compute_bp += Wide{group.slices} * amount.compute_bp;
      }
    slices += slice_count(need);
  }
};

// One queue of the pass, with its waiting jobs in order.
struct QueueState {
  const Queue* queue = nullptr;
  QueueUse use;
  std::vector<const WaitingJob*> jobs;
  std::vector<bool> admitted;  // Indexed by the position in `jobs`.
  size_t head = 0;             // Position of the first job that is neither held nor admitted.
  std::optional<WaitReason> blocked;
};

// A dominant share divided by the weight, as the fraction `part` / `whole`.
struct WeightedShare {
  Wide part = 0;
  Wide whole = 1;
};

// Compares the quotients, then the remainders in units of 2^-48. `whole` is below 2^74, so 128 bits are
// sufficient.
bool is_less(const WeightedShare& a, const WeightedShare& b) {
  const Wide whole_a = a.part / a.whole, whole_b = b.part / b.whole;
  if (whole_a != whole_b) return whole_a < whole_b;
  return ((a.part % a.whole) << 48) / a.whole < ((b.part % b.whole) << 48) / b.whole;
}

class QueuePass {
 public:
  QueuePass(std::span<const Queue> queues, std::span<const WaitingJob> waiting,
            std::span<const RunningJob> running, const Amount& total, Capacity& free, Ns now)
      : total_(total), free_(free), now_(now) {
    for (const Queue& queue : queues) states_.push_back({.queue = &queue});
    for (const RunningJob& job : running) {
      if (QueueState* state = find(job.queue)) {
        state->use.add(job.need);
        ++state->use.jobs;
      }
      running_.push_back({job.id, job.need, job.admitted_at});
    }
    for (const WaitingJob& job : waiting)
      if (QueueState* state = find(job.queue)) sort_in(*state, job);
    for (QueueState& state : states_) {
      std::ranges::sort(state.jobs, {}, [](const WaitingJob* job) {
        return std::pair{-int64_t{job->priority}, job->id};
      });
      state.admitted.resize(state.jobs.size());
      advance(state);
    }
  }

  QueueDecision run() {
    while (QueueState* state = next()) admit_head(*state);
    for (QueueState& state : states_)
      if (state.queue->backfill && state.blocked == WaitReason::capacity) backfill(state);
    list_waiting();
    return std::move(out_);
  }

 private:
  struct AdmittedJob {
    uint64_t id;
    JobNeed need;
    Ns admitted_at;
  };

  QueueState* find(std::string_view name) {
    const auto found =
        std::ranges::find(states_, name, [](const QueueState& s) { return std::string_view(s.queue->name); });
    return found == states_.end() ? nullptr : &*found;
  }

  void sort_in(QueueState& state, const WaitingJob& job) {
    if (const auto good = check(*state.queue, job.need, 0); !good)
      out_.actions.push_back({.kind = QueueAction::Kind::refuse,
                              .job = job.id,
                              .reason = QueueAction::Reason::limits,
                              .message = good.error().message});
    else
      state.jobs.push_back(&job);
  }

  void advance(QueueState& state) {
    while (state.head < state.jobs.size() && (state.admitted[state.head] || state.jobs[state.head]->is_held))
      ++state.head;
  }

  static QueueUse with(QueueUse use, const JobNeed& need) {
    use.add(need);
    return use;
  }

  bool is_within_quota(const QueueState& state, const JobNeed& need) const {
    const auto& quota = state.queue->quota;
    const QueueUse use = with(state.use, need);
    return quota && use.memory <= quota->memory.count && use.compute_bp <= quota->compute_bp;
  }

  static std::optional<WaitReason> limit(const QueueState& state, const WaitingJob& job) {
    const Queue& queue = *state.queue;
    if (queue.max_running != 0 && !job.is_growth && state.use.jobs + 1 > queue.max_running)
      return WaitReason::max_running;
    if (queue.max_slices != 0 && state.use.slices + slice_count(job.need) > queue.max_slices)
      return WaitReason::max_slices;
    return std::nullopt;
  }

  WeightedShare share_of(const QueueState& state) const {
    const WeightedShare memory{state.use.memory,
                               Wide{std::max<uint64_t>(total_.memory.count, 1)} * state.queue->weight};
    const WeightedShare compute{state.use.compute_bp,
                                Wide{std::max<uint64_t>(total_.compute_bp, 1)} * state.queue->weight};
    return is_less(memory, compute) ? compute : memory;
  }

  // Returns the queue whose head is next to be decided, or null if all queues are blocked or empty.
  QueueState* next() {
    QueueState* best = nullptr;
    bool best_within = false;
    for (QueueState& state : states_) {
      if (state.blocked || state.head == state.jobs.size()) continue;
      const bool within = is_within_quota(state, state.jobs[state.head]->need);
      if (best != nullptr && within != best_within) {
        if (!within) continue;
      } else if (best != nullptr && !precedes(state, *best)) {
        continue;
      }
      best = &state, best_within = within;
    }
    return best;
  }

  bool precedes(const QueueState& a, const QueueState& b) const {
    const WeightedShare of_a = share_of(a), of_b = share_of(b);
    if (is_less(of_a, of_b)) return true;
    return !is_less(of_b, of_a) && a.jobs[a.head]->id < b.jobs[b.head]->id;
  }

  void admit(QueueState& state, size_t position, QueueAction::Reason reason) {
    const WaitingJob& job = *state.jobs[position];
    state.use.add(job.need);
    if (!job.is_growth) ++state.use.jobs;
    state.admitted[position] = true;
    running_.push_back({job.id, job.need, now_});
    out_.actions.push_back({.kind = QueueAction::Kind::admit, .job = job.id, .reason = reason});
  }

  void admit_head(QueueState& state) {
    const WaitingJob& job = *state.jobs[state.head];
    const bool within = is_within_quota(state, job.need);
    state.blocked = limit(state, job);
    if (state.blocked) return;
    if (quota_waits_ && !within) {
      state.blocked = WaitReason::quota;
      return;
    }
    if (!free_.take(job.id, job.need)) {
      state.blocked = WaitReason::capacity;
      quota_waits_ |= within;
      return;
    }
    admit(state, state.head, QueueAction::Reason::head);
    advance(state);
  }

  static bool fits(Capacity& capacity, const WaitingJob& job) {
    if (!capacity.take(job.id, job.need)) return false;
    capacity.release(job.id);
    return true;
  }

  // Returns whether the head would fit next to the job, on the devices that the job would now get. If so,
  // `then` includes the job.
  bool leaves_room(Capacity& then, const WaitingJob& job, const WaitingJob& head) const {
    if (!then.take_same(job.id, free_)) return false;
    if (fits(then, head)) return true;
    then.release(job.id);
    return false;
  }

  // Releases the running jobs in the order of their latest ends until the head fits. Returns the time at
  // which it fits, and leaves the capacity that is free at that time in `then`.
  std::optional<Ns> latest_start(const WaitingJob& head, Capacity& then) const {
    std::vector<std::pair<Ns, uint64_t>> ends;
    for (const AdmittedJob& job : running_)
      if (job.need.deadline != 0) ends.emplace_back(after(job.admitted_at, job.need.deadline), job.id);
    std::ranges::sort(ends);
    for (const auto& [end, job] : ends) {
      then.release(job);
      if (fits(then, head)) return std::max(end, now_);
    }
    return std::nullopt;
  }

  void backfill(QueueState& state) {
    const std::unique_ptr<Capacity> then = free_.copy();
    const auto start = latest_start(*state.jobs[state.head], *then);
    if (!start) return;
    for (size_t i = state.head + 1; i < state.jobs.size(); ++i) {
      const WaitingJob& job = *state.jobs[i];
      if (job.is_held || limit(state, job) || (quota_waits_ && !is_within_quota(state, job.need))) continue;
      if (!free_.take(job.id, job.need)) continue;
      const bool ends_before = job.need.deadline != 0 && after(now_, job.need.deadline) <= *start;
      if (ends_before || leaves_room(*then, job, *state.jobs[state.head]))
        admit(state, i, QueueAction::Reason::backfill);
      else
        free_.release(job.id);
    }
  }

  void list_waiting() {
    for (const QueueState& state : states_) {
      uint32_t position = 0;
      for (size_t i = 0; i < state.jobs.size(); ++i) {
        if (state.admitted[i]) continue;
        WaitReason reason = WaitReason::behind_head;
        if (i == state.head) reason = state.blocked.value_or(WaitReason::capacity);
        if (state.jobs[i]->is_held) reason = WaitReason::budget;
        out_.waiting.push_back({.job = state.jobs[i]->id, .position = ++position, .reason = reason});
      }
    }
  }

  const Amount total_;
  Capacity& free_;
  const Ns now_;
  std::vector<QueueState> states_;
  std::vector<AdmittedJob> running_;  // Includes the jobs that this pass has admitted.
  bool quota_waits_ = false;          // A head within its quota waits for capacity.
  QueueDecision out_;
};

}  // namespace

QueueGpu gpu_of(const JobNeed& need) {
  if (need.groups.empty()) return QueueGpu::none;
  return need.groups.front().amounts.exclusive ? QueueGpu::gpu : QueueGpu::mgpu;
}

Amount amount_on(const Amounts& amounts, uint32_t device, Bytes device_memory) {
  invariant(device < amounts.device_count(), "the slice has a part with this index");
  if (amounts.exclusive) return {device_memory, whole_device.basis_points};
  const Part part = amounts.parts.empty() ? Part{.memory_bytes = amounts.memory_bytes,
                                                 .memory_bp = amounts.memory_bp,
                                                 .memory_units = amounts.memory_units,
                                                 .share_bp = amounts.share_bp}
                                          : amounts.parts[device];
  invariant(!part.memory_units, "a job requests no units");
  Amount out{.compute_bp = part.share_bp.value_or(0)};
  if (part.memory_bytes) out.memory = Bytes{*part.memory_bytes};
  if (part.memory_bp)
    out.memory.count =
        static_cast<uint64_t>(Wide{device_memory.count} * *part.memory_bp / whole_device.basis_points);
  if (amounts.total_memory_bytes) out.memory = Bytes{*amounts.total_memory_bytes / amounts.devices};
  return out;
}

Amount first_amount(const JobNeed& need) {
  if (need.groups.empty()) return {};
  return amount_on(need.groups.front().amounts, 0, need.device_memory);
}

uint32_t slice_index(const JobNeed& need, uint32_t group, uint32_t place_in_group) {
  return place_in_group * static_cast<uint32_t>(need.groups.size()) + group;
}

const Amounts& amounts_of_slice(const JobNeed& need, uint32_t index) {
  invariant(!need.groups.empty(), "a job with slices has a group");
  return need.groups[index % need.groups.size()].amounts;
}

std::vector<uint32_t> group_counts(const JobNeed& need) {
  std::vector<uint32_t> out;
  for (const SliceGroup& group : need.groups) out.push_back(group.slices);
  return out;
}

JobNeed with_counts(const JobNeed& need, const std::vector<uint32_t>& counts) {
  invariant(counts.size() == need.groups.size(), "each group has a number");
  JobNeed out = need;
  for (size_t i = 0; i < counts.size(); ++i) out.groups[i].slices = counts[i];
  std::erase_if(out.groups, [](const SliceGroup& group) { return group.slices == 0; });
  invariant(!out.groups.empty(), "a group has slices");
  return out;
}

uint64_t slice_count(const JobNeed& need) {
  uint64_t out = 0;
  for (const SliceGroup& group : need.groups) out += group.slices;
  return out;
}

Outcome<Queue> validated(Queue queue) {
  if (!is_name(queue.name))
    return failure(FailureKind::invalid_argument,
                   "'{}' is not a queue name; use up to 63 characters from a-z, 0-9 and -",
                   queue.name.substr(0, 80));
  if (queue.weight == 0 || queue.weight > max_queue_weight)
    return failure(FailureKind::invalid_argument, "weight {}: must be 1 to {}", queue.weight,
                   max_queue_weight);
  if (queue.gpu == QueueGpu::none && queue.quota)
    return failure(FailureKind::invalid_argument, "queue {} provides no GPU: leave out the quota",
                   queue.name);
  return queue;
}

Outcome<void> check(const Queue& queue, const JobNeed& need, size_t waiting) {
  const QueueGpu gpu = gpu_of(need);
  if (gpu != queue.gpu && gpu != QueueGpu::none) {
    const char* gives = queue.gpu == QueueGpu::gpu    ? "provides whole GPUs"
                        : queue.gpu == QueueGpu::mgpu ? "divides GPUs"
                                                      : "provides no GPU";
    const char* asks = gpu == QueueGpu::gpu ? "requests whole GPUs" : "requests slices";
    return failure(FailureKind::invalid_argument, "queue {} {}, but the job {}; choose another queue",
                   queue.name, gives, asks);
  }
  if ((gpu == QueueGpu::none) != (slice_count(need) == 0) || slice_count(need) > max_job_slices)
    return failure(FailureKind::invalid_argument,
                   "the job has {} slices; it must have 1 to {}, or none if it requests no GPU",
                   slice_count(need), max_job_slices);
  const auto is_too_large = [](const SliceGroup& group) {
    return group.amounts.share_bp > whole_device.basis_points;
  };
  if (std::ranges::any_of(need.groups, is_too_large))
    return failure(FailureKind::invalid_argument,
                   "the compute share of one slice is too large; use at most 100%");
  if (queue.max_slices != 0 && slice_count(need) > queue.max_slices)
    return failure(FailureKind::invalid_argument,
                   "the job has {} slices, but queue {} can have at most {} in total; request fewer",
                   slice_count(need), queue.name, queue.max_slices);
  if (need.deadline < 0) return failure(FailureKind::invalid_argument, "deadlineSeconds must be 0 or more");
  if (waiting >= max_waiting_jobs)
    return failure(FailureKind::insufficient_capacity,
                   "{} jobs are already waiting, which is the limit; submit again later", waiting);
  return {};
}

QueueDecision decide(std::span<const Queue> queues, std::span<const WaitingJob> waiting,
                     std::span<const RunningJob> running, const Amount& total, Capacity& free, Ns now) {
  return QueuePass(queues, waiting, running, total, free, now).run();
}

std::vector<QueueAction> actions(std::span<const Queue> queues, std::span<const WaitingJob> waiting,
                                 std::span<const RunningJob> running, const Amount& total, Capacity& free,
                                 Ns now) {
  return decide(queues, waiting, running, total, free, now).actions;
}

}  // namespace carve::workload
