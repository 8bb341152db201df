// The programs of a job's pods: commands and environments. Engines run unchanged; what goes wrong with them
// on one machine is avoided here (Spark 4.3, Ray 2.60, both tried):
//
// * A Spark master whose port is taken takes the next one, and its workers find another master:
//   spark.port.maxRetries=0. Spark listens on 127.0.0.1 (SPARK_LOCAL_IP), and its connections need a secret.
//   Spark 4 serves applications by REST at port 6066, which a second master cannot have: it is turned off.
// * Each Spark Worker is inside its own slice, because executors are its children. The Worker hands its
//   device over to the executor, so only the Worker and the driver run a discovery script.
// * The nodes of one Ray cluster share a network namespace of their own, because Ray listens on every
//   interface. Each has its own folder and agent port: two that share a folder kill each other. A folder's
//   path is short, because its sockets' paths have at most 107 bytes. The dashboard, which has Ray's job API
//   too, is carried to a port of 127.0.0.1 outside of that network. It demands the job's secret as its token.
#pragma once

#include <functional>

#include "fronts/engines/engine_pods.h"
#include "wire/objects/job_object.h"

namespace carve::fronts {

// What the machine has for the job.
struct EnginePlaces {
  std::string scripts;     // Folder of the scripts that are installed with Carve.
  std::string job_folder;  // Prefix of the pods' folders, of at most 30 bytes: "/tmp/carve-18a0f".
  uint32_t port = 0;       // Of Spark's master; of Ray's dashboard.
  std::string secret;      // Of the engine's connections.
  std::function<bool(const std::string& path)> has_file = [](const std::string&) { return false; };
};

struct PodProgram {
  std::vector<std::string> command;
  std::map<std::string, std::string> env;  // Beside that of the job.
  std::vector<std::string> cleanup;        // A command for the time when the program has ended.
};

// Returns the program of one pod. `pods` is engine_pods() of the job.
PodProgram pod_program(const objects::JobSpec&, const std::string& job, const EnginePods& pods,
                       workload::PodId, const EnginePlaces&);

// Returns the parameters that the job gets and its user did not set: sizes that follow from its slice. A key
// without a point is a variable of the environment of the pods with a slice.
std::vector<objects::DerivedParameter> derived_parameters(const objects::JobSpec&, const EnginePods&);

// Returns what is replaced for the job, as sentences: a discovery script that the machine does not have, and
// variables that each of its programs gets.
std::vector<std::string> replaced_parameters(const objects::JobSpec&, const EnginePlaces&);

inline constexpr std::string_view discovery_script_name = "getGpusResources.sh";

}  // namespace carve::fronts
