// Keeps jobs as they are desired: decides which waiting jobs their queues admit (workload/queue.h), and for
// each admitted job observes its pods, asks workload::actions() what to do next (workload/job.h) and carries
// it out. The loop may be killed between any two steps: a record is written before a slice is requested and
// before a program is started, and each effect may be repeated.
//
// What the loop keeps in memory alone is found again after a restart: refusals of capacity, and starts whose
// supervisor has not begun.
#pragma once

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
#include "fronts/engines/engine_programs.h"

namespace carve::controller {

// Returns the jobs and the clusters.
std::vector<ObjectRegistry::Pointer> queued_objects(const ObjectRegistry&);

class JobLoop {
 public:
  // `scripts`: the folder of the scripts that are installed with Carve.
  JobLoop(ObjectRegistry& objects, JobRecords records, Effects& effects, JobPositions& positions,
          std::string scripts)
      : objects_(objects),
        records_(std::move(records)),
        effects_(effects),
        positions_(positions),
        scripts_(std::move(scripts)) {}

  // Compares every job once and carries out its next actions; then admits jobs. `now` is UTC nanoseconds that
  // are not stepped while the process lives. Returns whether something changed, so that the next turn should
  // be soon.
  bool turn(Ns now);
  // The two parts of a turn, for a caller that measures the second one: admit() returns whether the queues
  // were decided, which they are after a change, or each second.
  void serve_jobs(Ns now);
  bool admit(Ns now);
  bool has_changed() const { return changed_; }
  // Returns whether a record has the program.
  bool has_record(const std::string& program) const { return records_.has_pod(program); }
  // Writes the lost record of a program again, if its job runs.
  bool adopt(const std::string& program, const ProgramOwner&);
  // Sets which names belong to programs without a record: no pod gets one.
  void set_taken(std::function<bool(const std::string&)> is_taken) { is_taken_ = std::move(is_taken); }
  JobPositions& positions() { return positions_; }
  // Returns whether a job has programs or slices, so that the turns should follow each other at least ten
  // times a second: the end of a program is seen in a turn.
  bool is_busy() const { return is_busy_; }

 private:
  // What is known of a job between turns.
  struct Known {
    uint32_t generation = 0;
    Result<JobForm, std::string> form = tl::unexpected(std::string());
    std::optional<workload::JobObserved::Refusal> refusal;
    unsigned refusals = 0;  // Of admissions in a row.
    Ns retry_at = 0;        // It is not admitted before.
    std::string why_requeued;
    std::string why_not_started;                                  // Of a program that the launcher refused.
    std::map<std::string, std::pair<uint32_t, Ns>> asked_starts;  // Attempt and moment, by program.
    bool is_over = false;                                         // It has an end and holds nothing.
    uint64_t seen_in = 0;                                         // Number of the last turn that has it.
  };
  // One job in one turn.
  struct Pass {
    ObjectRegistry::Pointer object;
    Known& known;
    JobRecord record;
    workload::Job job;
    workload::JobObserved observed = {};
    std::map<workload::PodId, PodRecord> pods = {};
    std::map<workload::PodId, ObservedProgram> programs = {};
    std::string problem = {};  // Why a step failed; the next turn tries again.
  };

  Known* known_of(const ObjectRegistry::Pointer&);
  void serve(const ObjectRegistry::Pointer&, Known&, Ns now);
  bool is_idle(const Object&, const Known&, Ns now) const;
  void find_drained_nodes();
  void return_from_drained_nodes(Pass&);
  void settle_workers(Pass&, Ns now);
  void end_growth(Pass&);
  bool settle_requests(Pass&);
  bool observe(Pass&, Ns now);
  bool observe_pod(Pass&, PodRecord&, Ns now);
  void carry_out(Pass&, const workload::JobAction&, Ns now);
  PodRecord record_of(const Pass&, workload::PodId) const;
  void create_slice(Pass&, PodRecord, Ns now);
  bool is_taken(Pass&, const PodRecord&);
  Outcome<void> grant(Pass&, PodRecord&);
  void start(Pass&, PodRecord, unsigned attempt, Ns now);
  void requeue(Pass&, Ns now);
  void finish(Pass&, workload::JobEnd, Ns now);
  void forget_pod(Pass&, const PodRecord&);
  void remove(Pass&);
  void write_status(Pass&);
  fronts::EnginePlaces places_of(const Pass&) const;

  void decide_queues(Ns now);
  struct PoolPass;
  void add_queue(std::map<std::string, PoolPass>&, const Object&, const SliceForecast&) const;
  void add_job(PoolPass&, const ObjectRegistry::Pointer&, const Known&, Ns now) const;
  void add_growth(PoolPass&, const ObjectRegistry::Pointer&, const Known&, Ns now) const;
  void decide(const std::string& pool, PoolPass&, const SliceForecast&, JobPositions::ByUid&, Ns now);
  std::vector<ForecastCapacity::HeldPlace> places_of_job(const Object&, const Known&, SliceForecast&) const;
  void admit_job(const Object&, Ns now);
  void admit_growth(const Object&);
  // Returns whether the status was written.
  bool write_queue_status(const Object&, const PoolPass&);
  SliceForecast present_forecast();

  // Returns false and keeps the sentence if the step failed.
  template <class T>
  bool done(Pass&, const Outcome<T>&);

  ObjectRegistry& objects_;
  JobRecords records_;
  Effects& effects_;
  JobPositions& positions_;
  const std::string scripts_;
  std::unordered_map<std::string, Known> known_;  // By uid.
  uint64_t turns_ = 0;
  std::optional<SliceForecast> known_nodes_;  // Of this turn, if it was needed.
  std::set<std::string> drained_nodes_;       // Of this turn.
  std::function<bool(const std::string&)> is_taken_;
  bool changed_ = false, is_busy_ = false;
  uint64_t decided_version_ = 0;  // Of the registry at the last decision.
  Ns decided_at_ = 0;
};

}  // namespace carve::controller
