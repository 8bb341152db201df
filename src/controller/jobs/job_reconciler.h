// Reconciles jobs with their desired state: decides which waiting jobs their queues admit (workload/queue.h),
// and for each admitted job observes its pods, calls workload::actions() for the next steps (workload/job.h)
// and carries them out. The reconciler may be killed between any two steps: a record is written before a
// slice is requested or a program is started, and each effect may be repeated.
//
// Some state is kept only in memory and is rediscovered after a restart: rejections for lack of capacity, and
// starts whose supervisor has not begun.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>

#include "controller/jobs/forecast_capacity.h"
#include "controller/jobs/job_positions.h"
#include "controller/jobs/job_records.h"
#include "controller/nodes/slice_forecast.h"
#include "controller/objects/job_form.h"
#include "controller/objects/object_registry.h"
#include "controller/services/effects.h"
#include "engines/engine_programs.h"

namespace carve::controller {

// Returns all jobs and clusters.
std::vector<ObjectRegistry::Pointer> queued_objects(const ObjectRegistry&);

class JobReconciler {
 public:
  // `scripts` is the folder with the scripts that are installed with Carve.
  JobReconciler(ObjectRegistry& objects, JobRecords records, Effects& effects, JobPositions& positions,
                std::string scripts)
      : objects_(objects),
        records_(std::move(records)),
        effects_(effects),
        positions_(positions),
        scripts_(std::move(scripts)) {}

  // Reconciles every job once, then admits jobs. `now` is UTC in nanoseconds; it must not be stepped while
  // the process lives. Returns whether something changed, so that the next turn should be soon.
  bool reconcile(Ns now);
  // The two parts of reconcile(), for callers that measure the second one. admit() decides the queues after a
  // change or once a second, and returns whether it did.
  void serve_jobs(Ns now);
  bool admit(Ns now);
  bool has_changed() const { return changed_; }
  // Returns whether a record exists for the program.
  bool has_record(const std::string& program) const { return records_.has_pod(program); }
  // Rewrites the lost record of a program if its job is running.
  bool adopt(const std::string& program, const ProgramOwner&);
  // Sets the predicate for names that belong to programs without a record. No pod gets one of these names.
  void set_taken(std::function<bool(const std::string&)> is_taken) { is_taken_ = std::move(is_taken); }
  JobPositions& positions() { return positions_; }
  // Returns whether a job has programs or slices. If so, reconcile() should be called at least ten times a
  // second, because only it notices the end of a program.
  bool is_busy() const { return is_busy_; }

 private:
  // The state of a job that is cached between turns.
  struct CachedJob {
    uint32_t generation = 0;
    Result<JobForm, std::string> form = tl::unexpected(std::string());
    std::optional<workload::JobObserved::Refusal> refusal;
    unsigned refusals = 0;  // Consecutive rejected admissions.
    Ns retry_at = 0;        // The job is not admitted before this time.
    Ns requeued_at = 0;     // When it returned to its queue; 0 if it did not.
    // Why the job does not fit on the empty devices of its pool; empty if it fits. Valid for this capacity
    // and time.
    std::string misfit;
    PoolCapacity misfit_capacity;
    Ns misfit_at = 0;  // 0 if it was never examined.
    std::string why_requeued;
    std::string why_not_started;                                  // Why the launcher rejected a program.
    std::map<std::string, std::pair<uint32_t, Ns>> asked_starts;  // Attempt and time, keyed by program.
    bool is_over = false;                                         // It has ended and holds nothing.
    uint64_t seen_in = 0;  // Number of the last turn in which it existed.

    Ns waits_since(const Object& object) const { return std::max(object.created_ns, requeued_at); }
  };
  // One job during one turn.
  struct Turn {
    ObjectRegistry::Pointer object;
    CachedJob& known;
    JobRecord record;
    workload::Job job;
    workload::JobObserved observed = {};
    std::map<workload::PodId, PodRecord> pods = {};
    std::map<workload::PodId, ObservedProgram> programs = {};
    std::string problem = {};  // Why a step failed; the next turn retries it.
  };

  CachedJob* known_of(const ObjectRegistry::Pointer&);
  void serve(const ObjectRegistry::Pointer&, CachedJob&, Ns now);
  bool is_idle(const Object&, const CachedJob&, Ns now) const;
  void find_drained_nodes();
  void return_from_drained_nodes(Turn&);
  void settle_workers(Turn&, Ns now);
  void end_growth(Turn&);
  bool settle_requests(Turn&);
  bool observe(Turn&, Ns now);
  bool observe_pod(Turn&, PodRecord&, Ns now);
  void carry_out(Turn&, const workload::JobAction&, Ns now);
  PodRecord record_of(const Turn&, workload::PodId) const;
  void create_slice(Turn&, PodRecord, Ns now);
  bool is_taken(Turn&, const PodRecord&);
  Outcome<void> grant(Turn&, PodRecord&);
  void start(Turn&, PodRecord, unsigned attempt, Ns now);
  void requeue(Turn&, Ns now);
  void finish(Turn&, workload::JobEnd, Ns now);
  void forget_pod(Turn&, const PodRecord&);
  void remove(Turn&);
  void write_status(Turn&);
  engines::EnginePlaces places_of(const Turn&) const;

  void decide_queues(Ns now);
  struct PoolTurn;
  void add_queue(std::map<std::string, PoolTurn>&, const Object&, const SliceForecast&) const;
  void examine_size(CachedJob&, const SliceForecast& empty, Ns now) const;
  void add_job(PoolTurn&, const ObjectRegistry::Pointer&, const CachedJob&, Ns now) const;
  void add_growth(PoolTurn&, const ObjectRegistry::Pointer&, const CachedJob&, Ns now) const;
  void decide(const std::string& pool, PoolTurn&, const SliceForecast&, JobPositions::ByUid&, Ns now);
  std::vector<ForecastCapacity::HeldPlace> places_of_job(const Object&, const CachedJob&,
                                                         SliceForecast&) const;
  void admit_job(const Object&, Ns now);
  void admit_growth(const Object&);
  // Returns whether the status was written.
  bool write_queue_status(const Object&, const PoolTurn&);
  SliceForecast present_forecast();

  // Returns false and records the message if the step failed.
  template <class T>
  bool done(Turn&, const Outcome<T>&);

  ObjectRegistry& objects_;
  JobRecords records_;
  Effects& effects_;
  JobPositions& positions_;
  const std::string scripts_;
  std::unordered_map<std::string, CachedJob> known_;  // Keyed by uid.
  uint64_t turns_ = 0;
  std::optional<SliceForecast> known_nodes_;  // Computed at most once per turn.
  std::set<std::string> drained_nodes_;       // Of this turn.
  std::function<bool(const std::string&)> is_taken_;
  bool changed_ = false, is_busy_ = false;
  uint64_t decided_version_ = 0;  // Registry version at the last decision.
  Ns decided_at_ = 0;
};

}  // namespace carve::controller
